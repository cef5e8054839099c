// What the programs of this folder share: data as `src/bench/data.rs` makes it, made on the device; times by
// the device's own clock, as `src/bench/timing.rs` takes them; lines and files as `src/bench/report.rs` prints
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int runs = 5;
constexpr u64 million = 1 << 20;
constexpr int block_threads = 256;

inline void must(cudaError_t status, const char* what) {
    if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

inline void must_hold(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
}

// Blocks for a kernel whose threads go on through the input.
inline u32 blocks_for(u64 count) { return (u32)std::min<u64>((count + block_threads - 1) / block_threads, 4096); }

// Memory of the device.
template <class T> class Buffer {
  public:
    explicit Buffer(u64 count) : count_(count) {
        must(cudaMalloc(&start_, std::max<u64>(count, 1) * sizeof(T)), "device memory");
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { cudaFree(start_); }

    T* start() const { return start_; }
    u64 count() const { return count_; }

    void write(const std::vector<T>& from) {
        must(cudaMemcpy(start_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "a copy to the device");
    }
    std::vector<T> read() const {
        std::vector<T> to(count_);
        must(cudaMemcpy(to.data(), start_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "a copy from the device");
        return to;
    }
    void fill_bytes(int byte) { must(cudaMemset(start_, byte, count_ * sizeof(T)), "filling device memory"); }

  private:
    T* start_ = nullptr;
    u64 count_;
};

// The random words of one seed. Word number n, from 1 on, needs no word before it, so each thread makes its own.
struct Random {
    u64 seed;

    __host__ __device__ u64 word(u64 number) const {
        constexpr u64 step = 0x9e3779b97f4a7c15;
        u64 word = seed * step + number * step;
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
        word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
        return word ^ (word >> 31);
    }
    // From 0 up to, but not, 1.
    __host__ __device__ double fraction(u64 number) const {
        return (double)(word(number) >> 11) / (double)(1ull << 53);
    }
    __host__ __device__ u64 below(u64 number, u64 end) const {
        return (u64)(((unsigned __int128)word(number) * end) >> 64);
    }
};

// Milliseconds of each run of `work` in the default stream, after one that is not counted.
template <class Work> std::vector<double> milliseconds(Work work) {
    cudaEvent_t start, end;
    must(cudaEventCreate(&start), "an event");
    must(cudaEventCreate(&end), "an event");
    std::vector<double> spans_ms;
    for (int run = 0; run <= runs; ++run) {
        must(cudaEventRecord(start), "an event");
        work();
        must(cudaEventRecord(end), "an event");
        must(cudaEventSynchronize(end), "a measured run");
        must(cudaGetLastError(), "a measured run");
        float span_ms = 0;
        must(cudaEventElapsedTime(&span_ms, start, end), "a measured run");
        if (run > 0) spans_ms.push_back(span_ms);
    }
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    return spans_ms;
}

// Converts spans for an amount into rates: `amount` a second, in billions.
inline std::vector<double> billions_a_second(double amount, const std::vector<double>& spans_ms) {
    std::vector<double> rates;
    for (double span_ms : spans_ms) rates.push_back(amount / span_ms / 1e6);
    return rates;
}

// The command line: PROGRAM [--small] [--case TEXT] [--json FILE]
struct Arguments {
    bool is_small = false;
    std::string part_of_case;
    std::string json;

    Arguments(int count, char** words) {
        for (int at = 1; at < count; ++at) {
            if (!strcmp(words[at], "--small")) {
                is_small = true;
            } else if (!strcmp(words[at], "--case") && at + 1 < count) {
                part_of_case = words[++at];
            } else if (!strcmp(words[at], "--json") && at + 1 < count) {
                json = words[++at];
            } else {
                throw std::runtime_error(std::string("usage: ") + words[0] + " [--small] [--case TEXT] [--json FILE]");
            }
        }
    }
};

// Prints each figure, and keeps it for the file.
class Report {
  public:
    explicit Report(const Arguments& arguments) : arguments_(arguments) {}

    bool is_small() const { return arguments_.is_small; }
    bool has_failed() const { return has_failed_; }

    // Measures a case if it is asked for. One that fails leaves the others their turn.
    template <class Work> void measure(const std::string& name, Work work) {
        if (name.find(arguments_.part_of_case) == std::string::npos) return;
        try {
            work();
        } catch (const std::exception& error) {
            has_failed_ = true;
            printf("%-12s %-58s FAILED: %s\n", bench, name.c_str(), error.what());
        }
    }
    void add(const std::string& name, const char* metric, const char* unit, std::vector<double> values) {
        std::sort(values.begin(), values.end());
        double median = values[values.size() / 2];
        printf("%-12s %-58s %-22s %10.3f %-10s", bench, name.c_str(), metric, median, unit);
        if (values.size() > 1) printf(" %.3f to %.3f in %zu runs", values.front(), values.back(), values.size());
        printf("\n");
        fflush(stdout);
        char object[512];
        snprintf(object, sizeof object,
                 "  {\"bench\": \"%s\", \"case\": \"%s\", \"metric\": \"%s\", \"value\": %.9g, \"unit\": \"%s\", "
                 "\"min\": %.9g, \"max\": %.9g, \"runs\": %zu, \"baseline\": null, \"ratio\": null}",
                 bench, name.c_str(), metric, median, unit, values.front(), values.back(), values.size());
        objects_ += (objects_.empty() ? "" : ",\n") + std::string(object);
    }
    // Writes the file if one is asked for.
    void write() const {
        const std::string& path = arguments_.json;
        if (path.empty()) return;
        FILE* file = fopen(path.c_str(), "w");
        must_hold(file != nullptr, "cannot write " + path);
        bool is_written = fprintf(file, "[\n%s\n]\n", objects_.c_str()) > 0;
        is_written &= fclose(file) == 0;
        must_hold(is_written, "cannot write " + path);
    }

  private:
    static constexpr const char* bench = "gpu.beside";
    Arguments arguments_;
    std::string objects_;
    bool has_failed_ = false;
};

// Runs `measure` on the first device.
template <class Measure> int run_program(int count, char** words, Measure measure) {
    try {
        Report report(Arguments(count, words));
        cudaDeviceProp device;
        int driver = 0;
        must(cudaGetDeviceProperties(&device, 0), "no device");
        must(cudaDriverGetVersion(&driver), "no driver");
        printf("%s, driver %d, %d multiprocessors\n", device.name, driver, device.multiProcessorCount);
        measure(report);
        report.write();
        return report.has_failed();
    } catch (const std::exception& error) {
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", words[0], error.what());
        return 1;
    }
}
