#include "vnpu/resources.h"

namespace ascend::vnpu {

absl::string_view ResourceName(Resource resource) {
  switch (resource) {
    case Resource::kAicore:
      return "aicore";
    case Resource::kAicpu:
      return "aicpu";
    case Resource::kMemory:
      return "memory";
    case Resource::kVpc:
      return "vpc";
    case Resource::kVenc:
      return "venc";
    case Resource::kVdec:
      return "vdec";
    case Resource::kJpegd:
      return "jpegd";
    case Resource::kJpege:
      return "jpege";
  }
  return "unknown";
}

}  // namespace ascend::vnpu
