// What the user chose, by environment or through the functions of stats.h.
#pragma once
#include <atomic>

namespace blaslt {

// AUDIOCPP_BLASLT=0 leaves every GEMM to hipBLAS.
bool enabled();

// AUDIOCPP_BLASLT_F32=fast lets f32 products use the GPU's reduced-precision f32 mode (TF32) where
// it has one; exact, the default, keeps f32 multiplications.
std::atomic<bool> & fast_f32();

// AUDIOCPP_BLASLT_POINTER_ARRAY=runs takes pointer-array batches apart even where the library has
// a call for them.
bool native_pointer_array();

} // namespace blaslt
