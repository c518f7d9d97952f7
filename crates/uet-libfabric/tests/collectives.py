"""Checks a ring, an all-reduce and an all-to-all on all ranks. `tools/applications` starts it with mpirun."""
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def check(name, got, expected):
    if got != expected:
        print(f"{name}: rank {rank} of {size} got other data", flush=True)
        world.Abort(1)


check("hello", world.allgather(rank), list(range(size)))

for length in (0, 1, 100, 5_000, 100_000):
    sent = array("q", range(rank, rank + length))
    got = array("q", bytes(8 * length))
    left, right = (rank - 1) % size, (rank + 1) % size
    world.Sendrecv(sent, right, recvbuf=got, source=left)
    check("ring", got, array("q", range(left, left + length)))

for length in (1, 1_000, 100_000):
    got = array("d", bytes(8 * length))
    world.Allreduce(array("d", [rank + 1.0]) * length, got)
    check("all-reduce", got, array("d", [size * (size + 1) / 2]) * length)

for length in (1, 1_000, 20_000):
    sent = array("i", [100 * rank + to for to in range(size) for _ in range(length)])
    got = array("i", bytes(4 * length * size))
    world.Alltoall(sent, got)
    check("all-to-all", got, array("i", [100 * of + rank for of in range(size) for _ in range(length)]))

world.Barrier()
if rank == 0:
    print(f"correct on {size} ranks")
