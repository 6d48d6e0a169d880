// Conversions that need no GPU library.
#pragma once
#include <cstdint>
#include <cstring>

namespace blaslt {

// hipBLAS before ROCm 6.5 names types by numbers of its own (hipblasDatatype_t, from 150 on);
// hipBLASLt uses hipDataType in every release. Numbers that are hipDataType already pass through;
// -1 for a legacy type that has no counterpart here.
constexpr int32_t hip_data_type(int32_t type) {
    switch (type) {
        case 150: return 2;    // HIPBLAS_R_16F -> HIP_R_16F
        case 151: return 0;    // HIPBLAS_R_32F -> HIP_R_32F
        case 152: return 1;    // HIPBLAS_R_64F -> HIP_R_64F
        case 160: return 3;    // HIPBLAS_R_8I  -> HIP_R_8I
        case 161: return 8;    // HIPBLAS_R_8U  -> HIP_R_8U
        case 162: return 10;   // HIPBLAS_R_32I -> HIP_R_32I
        case 163: return 12;   // HIPBLAS_R_32U -> HIP_R_32U
        case 168: return 14;   // HIPBLAS_R_16B -> HIP_R_16BF
        default:  return type >= 0 && type < 150 ? type : -1;
    }
}

inline float half_to_float(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ff, bits;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000 | (mantissa << 13);
    } else if (exponent) {
        bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else {
        const float value = float(mantissa) / 16777216.0f;   // subnormal: mantissa * 2^-24
        return sign ? -value : value;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// A run of consecutive matrices of a pointer-array batch whose addresses advance evenly, which one
// strided call can do. Strides in bytes; 0 repeats a matrix.
struct Run {
    int first, count;
    int64_t stride_a, stride_b, stride_c;
};

// The longest such run that starts at `first`. A stride must be a whole number of elements.
inline Run next_run(const void * const * a, const void * const * b, const void * const * c,
                    int first, int batch, int size_a, int size_b, int size_c) {
    const auto step = [](const void * const * p, int i) {
        return int64_t(reinterpret_cast<uintptr_t>(p[i + 1]) - reinterpret_cast<uintptr_t>(p[i]));
    };
    Run run{ first, 1, 0, 0, 0 };
    if (first + 1 >= batch) return run;
    const int64_t da = step(a, first), db = step(b, first), dc = step(c, first);
    // Outputs must not overlap, and a stride is not negative to the libraries.
    if (da < 0 || db < 0 || dc <= 0 || da % size_a || db % size_b || dc % size_c) return run;
    int i = first;
    while (i + 1 < batch && step(a, i) == da && step(b, i) == db && step(c, i) == dc) i++;
    run.count = i - first + 1;
    run.stride_a = da, run.stride_b = db, run.stride_c = dc;
    return run;
}

} // namespace blaslt
