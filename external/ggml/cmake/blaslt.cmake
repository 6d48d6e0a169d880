# The hipBLASLt route (../blaslt): ggml's GEMM calls go through hipBLASLt, without a change to
# ggml. The same source builds against cuBLASLt, so that it can be tested on NVIDIA hardware.
option(GGML_HIP_HIPBLASLT "HIP: send GEMM to hipBLASLt, hipBLAS as fallback" ON)
option(GGML_CUDA_CUBLASLT "CUDA: the same route through cuBLASLt" OFF)

set(BLASLT_DIR ${CMAKE_CURRENT_LIST_DIR}/../blaslt)

# Adds the route to ggml's backend target, whose device sources are in `language`.
function(audiocpp_add_blaslt target language)
  target_sources(${target} PRIVATE
    ${BLASLT_DIR}/context.cpp
    ${BLASLT_DIR}/entry.cpp
    ${BLASLT_DIR}/matmul.cpp
    ${BLASLT_DIR}/plugin.cpp
    ${BLASLT_DIR}/stats.cpp)
  if(WIN32 AND language STREQUAL "HIP")
    # There ggml compiles its sources as C++ with the HIP compiler; ours must not get the header.
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cu$")
    set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND_STRING PROPERTY
      COMPILE_FLAGS " -include \"${BLASLT_DIR}/route.h\"")
  else()
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:${language}>:SHELL:-include ${BLASLT_DIR}/route.h>")
  endif()
endfunction()

set(AUDIOCPP_BLASLT OFF)
if(TARGET ggml-hip AND GGML_HIP_HIPBLASLT)
  find_package(hipblaslt QUIET)
  if(hipblaslt_FOUND)
    audiocpp_add_blaslt(ggml-hip HIP)
    target_compile_definitions(ggml-hip PRIVATE $<$<COMPILE_LANGUAGE:CXX>:__HIP_PLATFORM_AMD__=1>)
    target_link_libraries(ggml-hip PRIVATE roc::hipblaslt)
    set(AUDIOCPP_BLASLT ON)
  else()
    message(WARNING "hipBLASLt was not found: GEMM goes through hipBLAS (rocBLAS) only, which has "
      "no kernels for some GPUs (gfx1103 on Windows among them). Install hipblaslt's development "
      "package, or set -DGGML_HIP_HIPBLASLT=OFF to say that this is meant.")
  endif()
endif()
if(TARGET ggml-cuda AND GGML_CUDA_CUBLASLT)
  find_package(CUDAToolkit REQUIRED)
  audiocpp_add_blaslt(ggml-cuda CUDA)
  target_link_libraries(ggml-cuda PRIVATE CUDA::cublasLt CUDA::cudart)
  set(AUDIOCPP_BLASLT ON)
endif()

# Programs that check the route on a real GPU; `cmake --build . --target blaslt_checks` makes them.
if(AUDIOCPP_BLASLT)
  add_executable(gemm_check EXCLUDE_FROM_ALL ${BLASLT_DIR}/check/gemm_check.cpp)
  target_link_libraries(gemm_check PRIVATE ggml ggml-base)
  add_executable(capture_check EXCLUDE_FROM_ALL
    ${BLASLT_DIR}/check/capture_check.cpp
    ${BLASLT_DIR}/context.cpp
    ${BLASLT_DIR}/entry.cpp
    ${BLASLT_DIR}/matmul.cpp
    ${BLASLT_DIR}/stats.cpp)
  target_include_directories(capture_check PRIVATE ${GGML_SOURCE_DIR}/src)
  target_link_libraries(capture_check PRIVATE ggml-base)
  if(TARGET ggml-hip)
    # What ggml found is known in its own folder only.
    find_package(hip REQUIRED)
    find_package(hipblas REQUIRED)
    target_compile_definitions(capture_check PRIVATE GGML_USE_HIP __HIP_PLATFORM_AMD__=1)
    target_link_libraries(capture_check PRIVATE roc::hipblaslt roc::hipblas hip::host)
  else()
    target_link_libraries(capture_check PRIVATE CUDA::cublasLt CUDA::cublas CUDA::cudart)
  endif()
  foreach(check gemm_check capture_check)
    target_compile_features(${check} PRIVATE cxx_std_17)
    set_target_properties(${check} PROPERTIES BUILD_WITH_INSTALL_RPATH OFF)
  endforeach()
  add_custom_target(blaslt_checks DEPENDS gemm_check capture_check)
endif()
message(STATUS "GEMM through BLASLt: ${AUDIOCPP_BLASLT}")

# Tests of the route on fake libraries; `cmake --build . --target blaslt_tests` makes them.
if(BUILD_SHARED_LIBS AND UNIX)
  add_custom_target(blaslt_tests)
  function(blaslt_test name)
    add_executable(${name} EXCLUDE_FROM_ALL
      ${BLASLT_DIR}/test/blaslt_test.cpp
      ${BLASLT_DIR}/test/fake/fake.cpp
      ${BLASLT_DIR}/context.cpp
      ${BLASLT_DIR}/entry.cpp
      ${BLASLT_DIR}/matmul.cpp
      ${BLASLT_DIR}/stats.cpp)
    target_include_directories(${name} PRIVATE
      ${BLASLT_DIR}/test/fake ${GGML_SOURCE_DIR}/src ${GGML_SOURCE_DIR}/include)
    target_compile_definitions(${name} PRIVATE GGML_USE_HIP ${ARGN})
    target_compile_features(${name} PRIVATE cxx_std_17)
    target_compile_options(${name} PRIVATE -O1 -Wall -Wextra -Wno-unused-function)
    target_link_libraries(${name} PRIVATE ggml-base)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
      INSTALL_RPATH "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
    add_dependencies(blaslt_tests ${name})
  endfunction()
  blaslt_test(blaslt_rocm_7)
  blaslt_test(blaslt_rocm_6_4 HIP_VERSION=60400000)
  blaslt_test(blaslt_pointer_arrays HIPBLASLT_VERSION_MAJOR=1 HIPBLASLT_VERSION_MINOR=3)
endif()
