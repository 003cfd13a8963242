# Compiler, linker and cache choices that hold for every target of the project.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(ASCEND_CCACHE ccache)
if(ASCEND_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source tree count as relative, so that another clone finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${ASCEND_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
  add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")
endif()

find_program(ASCEND_LLD ld.lld)
if(ASCEND_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Both report falsely on inlined std::string when optimising (GCC bugs 105651, 105562); clang-tidy
  # and UBSan look for the real thing.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized)
endif()
if(ASCEND_DRA_WERROR)
  add_compile_options(-Werror)
endif()

# The programs run next to a kubelet with root's rights: harden what costs nothing.
add_compile_options(-fstack-protector-strong)
add_link_options(-Wl,-z,relro,-z,now)

if(ASCEND_DRA_SANITIZE)
  add_compile_options(-fsanitize=${ASCEND_DRA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ASCEND_DRA_SANITIZE})
endif()

option(ASCEND_DRA_FUZZ "Build the libFuzzer targets, with clang; see scripts/fuzz.sh" OFF)
if(ASCEND_DRA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage, for the libraries too
endif()
