// CHECK for fuzz targets: says what is broken, and stops the fuzzer.
#ifndef ASCEND_DRA_CDI_FUZZ_CHECK_H_
#define ASCEND_DRA_CDI_FUZZ_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define FUZZ_CHECK(condition)                                                    \
  if (!(condition)) {                                                            \
    std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    std::abort();                                                                \
  }

#endif  // ASCEND_DRA_CDI_FUZZ_CHECK_H_
