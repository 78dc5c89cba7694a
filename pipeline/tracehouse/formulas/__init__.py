"""FLOPs and bytes of op calls: one module a family of formulas, over the args of signatures."""
