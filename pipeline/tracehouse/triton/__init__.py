"""What the names and the cache files of torch.compile's Triton kernels tell.

A name holds the kernel's kind and the ops it fused (`names`, by the table of `vocabulary`); a file
of the Inductor cache holds its sizes, pointers and original ops as well (`inductor_cache`).
Everything is read as text: nothing of a trace or a cache is ever imported or evaluated.
"""
