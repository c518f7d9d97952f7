// One rank of oneCCL's all-reduce over libfabric: `allreduce RANK RANKS FILE COUNT ...`. Each count of floats is summed five times.
// Rank 0 writes the address of oneCCL's key-value store to FILE. `tools/applications ccl` builds and runs it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <oneapi/ccl.hpp>
#include <string>
#include <thread>
#include <vector>

// What the library takes from Intel's compiler and profiler.
extern "C" {
void *_intel_fast_memcpy(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *_intel_fast_memset(void *to, int value, size_t size) { return memset(to, value, size); }
#define HOOK(name) void *__itt_##name##_ptr__3_0;
HOOK(domain_create) HOOK(event_create) HOOK(event_end) HOOK(event_start) HOOK(metadata_add)
HOOK(string_handle_create) HOOK(task_begin) HOOK(task_end) HOOK(thread_set_name)
}

static ccl::shared_ptr_class<ccl::kvs> meet(int rank, const std::string &file) {
    if (rank == 0) {
        auto store = ccl::create_main_kvs();
        auto address = store->get_address();
        std::ofstream(file + ".part", std::ios::binary).write(address.data(), address.size());
        std::filesystem::rename(file + ".part", file);
        return store;
    }
    for (int tries = 0; tries < 6000 && !std::filesystem::exists(file); ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ccl::kvs::address_type address;
    std::ifstream(file, std::ios::binary).read(address.data(), address.size());
    return ccl::create_kvs(address);
}

// Waits until all ranks are here. oneCCL closes no endpoint when a process ends, which then acknowledges nothing any more:
// a rank whose last acknowledgment the network has lost would time out.
void part(int rank, int ranks, const std::string &file) {
    std::ofstream(file + "." + std::to_string(rank));
    for (int other = 0; other < ranks; ++other) {
        for (int tries = 0; tries < 6000 && !std::filesystem::exists(file + "." + std::to_string(other)); ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
}

int main(int argc, char **argv) {
    int rank = atoi(argv[1]), ranks = atoi(argv[2]);
    ccl::init();
    auto all = ccl::create_communicator(ranks, rank, meet(rank, argv[3]));
    for (int argument = 4; argument < argc; ++argument) {
        size_t count = strtoul(argv[argument], nullptr, 10);
        std::vector<float> own(count), sum(count);
        for (size_t at = 0; at < count; ++at) own[at] = rank + at % 7;
        std::vector<double> times;
        for (int round = 0; round < 5; ++round) {
            ccl::barrier(all);
            auto start = std::chrono::steady_clock::now();
            ccl::allreduce(own.data(), sum.data(), count, ccl::reduction::sum, all).wait();
            times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
            for (size_t at = 0; at < count; ++at) {
                if (sum[at] != ranks * (ranks - 1) / 2 + ranks * (at % 7)) {
                    printf("wrong at %zu of %zu\n", at, count);
                    return 1;
                }
            }
        }
        std::sort(times.begin(), times.end());
        if (rank == 0) printf("%zu floats: %.0f us\n", count, times[2]);
    }
    if (rank == 0) printf("correct on %d ranks\n", ranks);
    fflush(stdout);
    part(rank, ranks, argv[3]);
}
