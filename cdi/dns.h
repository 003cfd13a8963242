// Names of the DNS, as Kubernetes uses them.
#ifndef ASCEND_DRA_CDI_DNS_H_
#define ASCEND_DRA_CDI_DNS_H_

#include "absl/strings/string_view.h"

namespace ascend::cdi {

// RFC 1123: lower-case labels of 1 to 63 letters, digits and dashes, with a letter or digit at both
// ends, joined by dots; 253 characters at most.
bool IsDnsSubdomain(absl::string_view name);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_DNS_H_
