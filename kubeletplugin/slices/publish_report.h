// What the slice publisher did, for metrics.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISH_REPORT_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISH_REPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "kubeletplugin/kube/resource_slice.h"

namespace ascend::kubeletplugin {

struct PublishReport {
  enum class Event {
    kCurrent,       // looked, and the server holds what it should
    kWritten,       // slices were created, updated or deleted
    kFailed,        // a round ended with an error
    kNotPublisher,  // a newer instance of the driver publishes from now on
  };
  Event event = Event::kCurrent;
  // kCurrent: the pool's generation, and its slices by name; valid during the call.
  int64_t generation = 0;
  const std::map<std::string, kube::ResourceSlice>* slices = nullptr;
};

// Called on the publisher's thread; must return quickly.
using PublishObserver = std::function<void(const PublishReport&)>;

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISH_REPORT_H_
