// Whether this program runs under a sanitizer, to size tests by.
#ifndef ASCEND_DRA_TEST_SOAK_SANITIZER_H_
#define ASCEND_DRA_TEST_SOAK_SANITIZER_H_

namespace ascend::soak {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace ascend::soak

#endif  // ASCEND_DRA_TEST_SOAK_SANITIZER_H_
