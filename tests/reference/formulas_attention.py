"""Attention by loops over every query and key; slow, and free of closed forms."""

from __future__ import annotations

from dataclasses import dataclass

BYTES = {"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8}


@dataclass(frozen=True)
class Attention:
    """A call: sizes, mask, element type; bias: its shape; lse: whether the row sums are kept."""

    b: int
    h_q: int
    h_kv: int
    n_q: int
    n_k: int
    d_qk: int
    d_v: int
    type: str = "c10::BFloat16"
    causal: bool = False
    top_left: bool = False
    left: int = -1
    right: int = -1
    bias: tuple[int, ...] = ()
    lse: bool = True

    def sees(self, row: int, key: int) -> bool:
        """Tell whether a query sees a key."""
        diagonal = row if self.top_left else row + self.n_k - self.n_q
        right = 0 if self.causal else self.right
        if right >= 0 and key > diagonal + right:
            return False
        return not (self.left >= 0 and key < diagonal - self.left)

    def weights(self) -> list[list[float]]:
        """The weight of every pair: 0 or 1, on the diagonal of a plain square triangle 1/2."""
        table = [[float(self.sees(i, j)) for j in range(self.n_k)] for i in range(self.n_q)]
        right = 0 if self.causal else self.right
        triangle = [[float(j <= i) for j in range(self.n_k)] for i in range(self.n_q)]
        if self.n_q == self.n_k and right == 0 and table == triangle:
            for i in range(self.n_q):
                table[i][i] = 0.5
        return table

    def pairs(self) -> float:
        return sum(weight for row in self.weights() for weight in row)

    def keys(self) -> int:
        """How many keys at least one query sees."""
        return sum(any(self.sees(i, j) for i in range(self.n_q)) for j in range(self.n_k))

    def flops(self) -> float:
        total = 0.0
        for _ in range(self.b * self.h_q):
            for row in self.weights():
                for weight in row:
                    total += weight * (2 * self.d_qk + 2 * self.d_v)
        return total

    def flops_bwd(self) -> float:
        """dV, dP, scores again, dQ, dK; then the key heads' gradients are summed."""
        total = 0.0
        for _ in range(self.b * self.h_q):
            for row in self.weights():
                for weight in row:
                    total += weight * 2 * (self.d_v + self.d_v + self.d_qk + self.d_qk + self.d_qk)
        for _ in range(self.b * self.n_k * (self.d_qk + self.d_v)):
            for _ in range(self.h_kv):
                total += max(self.h_q // self.h_kv - 1, 0)  # additions of that many partial sums
        return total

    def bias_elements(self) -> int:
        product = 1
        for size in self.bias:
            product *= size
        return product if self.bias else 0

    def read(self) -> int:
        size = BYTES[self.type]
        q = self.b * self.n_q * self.h_q * self.d_qk
        keys = self.b * self.keys() * self.h_kv * (self.d_qk + self.d_v)
        return (q + keys + self.bias_elements()) * size

    def output(self) -> int:
        return self.b * self.n_q * self.h_q * self.d_v * BYTES[self.type]

    def row_sums(self) -> int:
        return self.b * self.h_q * self.n_q * (8 if self.type == "double" else 4)

    def bytes(self) -> int:
        return self.read() + self.output() + (self.row_sums() if self.lse else 0)

    def bytes_bwd(self, *, bias_grad: bool = False) -> int:
        size = BYTES[self.type]
        gradients = self.b * self.n_q * self.h_q * self.d_qk
        gradients += self.b * self.n_k * self.h_kv * (self.d_qk + self.d_v)
        gradients += self.bias_elements() if bias_grad else 0
        sums = self.row_sums() if self.lse else 0
        return self.read() + 2 * self.output() + sums + gradients * size


def packed_pairs(lengths_q: list[int], lengths_k: list[int], *, causal: bool) -> float:
    """The pairs of sequences that lie one after the other."""
    return sum(
        Attention(1, 1, 1, n, m, 1, 1, causal=causal).pairs()
        for n, m in zip(lengths_q, lengths_k, strict=True)
    )


def serving_flops(
    chunks: list[tuple[int, int]], decodes: list[tuple[int, int]], h_q: int, width: int
) -> float:
    """Requests of a step, each (queries, keys): chunks see themselves as a triangle, by half."""
    pairs = 0.0
    for queries, keys in chunks:
        for row in range(queries):
            for key in range(keys):
                own = key - (keys - queries)  # place inside the chunk, negative in the cache
                pairs += 1.0 if own < row else 0.5 if own == row else 0.0
    for queries, keys in decodes:
        pairs += sum(1 for _ in range(queries) for _ in range(keys))
    return 2 * h_q * width * pairs


def serving_bytes(
    requests: list[tuple[int, int]], h_q: int, h_kv: int, width: int, here: int, there: int
) -> int:
    """Queries and outputs in one type, every key and value of a request in another."""
    total = 0
    for queries, keys in requests:
        total += queries * h_q * width * here
        total += keys * h_kv * width * there
    return total
