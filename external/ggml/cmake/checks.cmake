# What a configuration may not ask for, said before anything is built.
cmake_minimum_required(VERSION 3.18)

# Names that older versions and other projects use. ggml would take no notice of most of them, and
# the build would come out without what was asked for.
set(retired
  "GGML_HIPBLAS:GGML_HIP=ON" "LLAMA_HIPBLAS:GGML_HIP=ON" "GGML_ROCM:GGML_HIP=ON"
  "GGML_CUBLAS:GGML_CUDA=ON" "LLAMA_CUBLAS:GGML_CUDA=ON" "LLAMA_CUDA:GGML_CUDA=ON"
  "GGML_HIP_UMA:the environment variable GGML_CUDA_ENABLE_UNIFIED_MEMORY=1"
  "GGML_HIP_ROCWMMA_FATTN:nothing (ggml removed it)"
  "GGML_CUDA_FORCE_DMMV:nothing (ggml removed it)"
  "GGML_CUDA_F16:nothing (ggml removed it)"
  "ENGINE_ENABLE_HIP:GGML_HIP=ON" "ENGINE_ENABLE_CUDA:GGML_CUDA=ON"
  "ENGINE_ENABLE_VULKAN:GGML_VULKAN=ON" "ENGINE_ENABLE_METAL:GGML_METAL=ON"
  "ENGINE_ENABLE_CUDA_GRAPHS:GGML_CUDA_GRAPHS or GGML_HIP_GRAPHS"
  "ENGINE_ENABLE_OPENMP:GGML_OPENMP")
foreach(entry ${retired})
  string(REGEX MATCH "^([A-Za-z0-9_]+):(.*)$" _ "${entry}")
  set(name ${CMAKE_MATCH_1})
  set(replacement ${CMAKE_MATCH_2})
  # None of them is an option of ggml, which a second configuration would find in the cache: a
  # test (tests/configure.rs) sees to that.
  if(DEFINED ${name})
    message(FATAL_ERROR "${name} is retired; use ${replacement}")
  endif()
endforeach()

if(GGML_CUDA AND GGML_HIP)
  message(FATAL_ERROR "GGML_CUDA and GGML_HIP compile the same ggml sources and cannot share a build: "
    "make two packs, each in a build folder of its own")
endif()

set(AUDIOCPP_GFX_TARGETS
  gfx900 gfx906 gfx908 gfx90a gfx942 gfx950
  gfx1010 gfx1011 gfx1012 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036
  gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201)
if(GGML_HIP)
  if(NOT GPU_TARGETS)
    message(FATAL_ERROR "GGML_HIP needs GPU_TARGETS, the GPUs to compile for, such as -DGPU_TARGETS=\"gfx1100;gfx1151\"")
  endif()
  foreach(target ${GPU_TARGETS})
    string(REGEX REPLACE ":.*" "" name ${target})   # gfx90a:xnack-
    if(NOT name IN_LIST AUDIOCPP_GFX_TARGETS)
      list(JOIN AUDIOCPP_GFX_TARGETS ", " known)
      message(FATAL_ERROR "unknown GPU target ${target}; known: ${known}")
    endif()
  endforeach()
elseif(DEFINED GPU_TARGETS)
  message(FATAL_ERROR "GPU_TARGETS is given without GGML_HIP=ON")
endif()
if(GGML_HIP AND NOT GGML_BACKEND_DL)
  message(FATAL_ERROR "the HIP backend is built as a plugin only: set GGML_BACKEND_DL=ON and BUILD_SHARED_LIBS=ON")
endif()
