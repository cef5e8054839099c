// CUB's histogram beside the groupings of gpu-contention: counts of codes that are on the device.
//
// A count by group is a histogram whose bins have the width 1. `cub::DeviceHistogram::HistogramEven` computes a
// code's bin from the bounds: with an integer division where they are integers, with a multiplication where they
// are floats, which hold these codes exactly. Both are measured. Every case's counts are compared with the CPU's.
#include <cub/device/device_histogram.cuh>

#include "measured.cuh"

// Code c has a weight of 1 / (c + 1)^theta: `sums` has the sums of weights up to each code. As `zipf` in data.rs.
__global__ void make_zipf(u32* codes, u64 count, const double* sums, u32 values, Random random) {
    double total = sums[values - 1];
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        double point = random.fraction(at + 1) * total;
        u32 low = 0, high = values;
        while (low < high) {
            u32 middle = (low + high) / 2;
            if (sums[middle] <= point) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        codes[at] = min(low, values - 1);
    }
}

void fill_zipf(Buffer<u32>& codes, u32 values, double theta) {
    std::vector<double> sums;
    double total = 0;
    for (u32 rank = 1; rank <= values; ++rank) sums.push_back(total += std::pow((double)rank, -theta));
    Buffer<double> near(values);
    near.write(sums);
    make_zipf<<<blocks_for(codes.count()), block_threads>>>(codes.start(), codes.count(), near.start(), values, {1});
    must(cudaDeviceSynchronize(), "making codes");
}

std::vector<u32> counts_of(const std::vector<u32>& codes, u32 groups) {
    std::vector<u32> counts(groups);
    for (u32 code : codes) ++counts.at(code);
    return counts;
}

// `Bound`: the type of the lower and upper bound.
template <class Bound>
void count_codes(Report& report, const std::string& name, const Buffer<u32>& codes,
                 const std::vector<u32>& expected) {
    int groups = (int)expected.size();
    Buffer<u32> counts(groups);
    counts.fill_bytes(0xff);
    size_t scratch_bytes = 0;
    auto launch = [&](void* scratch) {
        must(cub::DeviceHistogram::HistogramEven(scratch, scratch_bytes, codes.start(), counts.start(), groups + 1,
                                                 (Bound)0, (Bound)groups, (int)codes.count()),
             "HistogramEven");
    };
    launch(nullptr); // says how much scratch memory it needs
    Buffer<unsigned char> scratch(scratch_bytes);
    std::vector<double> spans_ms = milliseconds([&] { launch(scratch.start()); });
    must_hold(counts.read() == expected, "counts differ from the CPU's");
    report.add(name, "throughput", "G rows/s", billions_a_second((double)codes.count(), spans_ms));
}

void measure(Report& report) {
    Buffer<u32> codes(report.is_small() ? 1'000'000 : 64'000'000);
    for (u32 groups : {4, 64, 512, 1024, 2048, 4096}) {
        for (int theta : {0, 1, 2}) {
            fill_zipf(codes, groups, theta);
            std::vector<u32> expected = counts_of(codes.read(), groups);
            std::string name = "CUB, " + std::to_string(groups) + " groups, theta " + std::to_string(theta);
            std::string by_integers = name + ", integer bounds", by_floats = name + ", float bounds";
            report.measure(by_integers, [&] { count_codes<u32>(report, by_integers, codes, expected); });
            report.measure(by_floats, [&] { count_codes<float>(report, by_floats, codes, expected); });
        }
    }
}

int main(int count, char** words) { return run_program(count, words, measure); }
