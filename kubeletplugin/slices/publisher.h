// Keeps the node's ResourceSlices on the API server as they should be: writes when the plan
// changes, puts back what was deleted at once and what somebody edited after a while, and writes
// nothing when nothing changed.
#ifndef ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_H_
#define ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/slices/builder.h"
#include "kubeletplugin/slices/publish_report.h"
#include "kubeletplugin/slices/publisher_role.h"

namespace ascend::kubeletplugin {

class SlicePublisher {
 public:
  struct Options {
    std::string driver;
    std::string node_name;
    // Two versions of the driver would fight over an edit; after this time it is undone.
    absl::Duration restore_edits_after = absl::Seconds(30);
    absl::Duration min_backoff = absl::Milliseconds(50);
    absl::Duration max_backoff = absl::Seconds(10);
    absl::Duration request_timeout = absl::Seconds(10);
    // A server that dropped taints may have been the last old one of an upgrade: so long after, it
    // is tried again, once per watch.
    absl::Duration retry_taints_after = absl::Minutes(1);
    // The same for counters; later, because each trial changes the layout of all slices.
    absl::Duration retry_counters_after = absl::Minutes(10);
    PublishObserver observe;  // null = nobody
  };
  struct Wanted {
    SliceInputs inputs;  // driver, node name and UID, server_keeps_taints are filled in here
    // False while it is not known what to publish: the server's slices stay as they are.
    bool known = false;
    // Then why, for people.
    std::string unknown_because =
        "the chips of this node are not known yet: waiting for ascend-npu-agent";
    // When `inputs` has to be asked for again although nobody calls Wake().
    std::optional<absl::Duration> ask_again_after;
  };

  // `wanted` is asked on the publisher's thread. `role` decides whether this instance writes; it is
  // not competed for before `wanted` is known, so that an older instance goes on until then.
  SlicePublisher(Options options, kube::Client& client, PublisherRole role,
                 std::function<Wanted()> wanted);
  ~SlicePublisher();  // Stop()
  SlicePublisher(const SlicePublisher&) = delete;
  SlicePublisher& operator=(const SlicePublisher&) = delete;

  void Start();
  // Ends the thread: `wanted` is not asked any more, Wake() does nothing. Slices stay on the
  // server. Waits for a running call of the client: shut the client down before, where that must
  // not take until its time-out.
  void Stop();
  // Something that `wanted` depends on changed, or the publisher directory did.
  void Wake();

  // OK when the server holds what this instance wants published, or when that is a newer
  // instance's business; else what is missing, for people.
  absl::Status ready() const;

 private:
  void Run();
  // One round. Returns how long to wait for a Wake() before the next one.
  absl::Duration Step();
  absl::Status Publish(const Wanted& wanted, absl::Duration* wait);
  absl::Status RefreshNodeUid();
  // False if what the server has is not known for now.
  absl::StatusOr<bool> EnsureView(absl::Duration* wait);
  void ApplyEvents();
  void WatchEnded(const absl::Status& status);
  absl::Status Reconcile(SlicePlan plan, absl::Duration* wait);
  absl::Status DeleteObsolete(const std::map<std::string, kube::ResourceSlice>& obsolete);
  absl::Status Store(kube::ResourceSlice slice, const kube::ResourceSlice* existing);
  void NoticeDroppedFields(const kube::ResourceSlice& sent, const kube::ResourceSlice& stored);
  // To be called while the server has what was planned without taints: only then is a plan with
  // them written anew.
  void RetryTaints(absl::Duration* wait);
  void RetryCounters(absl::Duration* wait);
  void CountersRefused(const absl::Status& error);
  void SetReady(absl::Status status);
  void Report(PublishReport::Event event) const;
  void Forget();

  const Options options_;
  kube::Client& client_;
  const std::function<Wanted()> wanted_;

  // What the watch reported and the thread has not looked at yet.
  mutable Mutex mutex_;
  CondVar changed_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<kube::SliceEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> watch_ended_ ABSL_GUARDED_BY(mutex_);
  absl::Status ready_ ABSL_GUARDED_BY(mutex_) =
      absl::UnavailableError("ResourceSlices are not published yet");

  // Everything below belongs to the thread.
  struct Written {
    kube::ResourceSlice sent;
    kube::ResourceSlice stored;  // the server's answer: may lack fields it does not know
  };
  PublisherRole role_;
  bool had_role_ = false;
  std::string role_error_;
  std::string node_uid_;

  std::map<std::string, kube::ResourceSlice> on_server_;
  std::set<std::string> deleted_uids_;  // by us, their last event has not come yet
  std::string resource_version_;        // of on_server_; empty = list
  std::unique_ptr<kube::Watch> watch_;
  absl::Duration watch_started_;  // this and all points in time below are monotonic
  absl::Duration watch_not_before_;
  absl::Duration watch_backoff_;
  std::string watch_error_;

  std::map<std::string, Written> written_;
  std::map<std::string, absl::Duration> edited_since_;  // by name
  int64_t generation_ = 0;
  bool server_keeps_taints_ = true;
  bool may_retry_taints_ = false;  // not yet done since the watch began
  bool kept_taints_ = false;       // in a write after the last one that dropped them
  absl::Duration taints_dropped_;
  bool server_keeps_counters_ = true;
  bool may_retry_counters_ = false;  // not yet done since the watch began
  absl::Duration counters_dropped_;
  std::set<std::string> dropped_fields_;  // named in the log already
  std::vector<std::string> last_warnings_;
  std::vector<std::string> last_problems_;

  // Against somebody who deletes our slices again and again.
  absl::Duration last_restore_ = -absl::InfiniteDuration();
  absl::Duration restore_backoff_;

  absl::Duration not_before_ = -absl::InfiniteDuration();  // after an error
  absl::Duration backoff_;
  std::string last_error_;

  std::thread thread_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_SLICES_PUBLISHER_H_
