// What would be on a disk after a power cut: file data that was synced, and names of directories
// that were synced. Kept in memory beside the real files, which Cut() then makes like it.
//
// The strictest reading of POSIX: a new name, also a directory's, is durable only once its own
// directory was synced. Not thread-safe.
#ifndef ASCEND_DRA_TEST_FAULT_PRELOAD_DURABLE_STATE_H_
#define ASCEND_DRA_TEST_FAULT_PRELOAD_DURABLE_STATE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace ascend::fault {

enum class PowerCut {
  kLost,   // everything that was not synced is undone
  kKept,   // names are kept, but the data behind them is not: empty files
  kMixed,  // every second name is kept, data that was not synced is cut in half
};

class DurableState {
 public:
  // Whatever is below `root` now is durable.
  void AddRoot(const std::string& root);

  // After a call of the process succeeded.
  void Created(int fd);
  void Written(int fd);
  void Synced(int fd, const std::string& path);

  // `salt` chooses which names a mixed cut keeps.
  void Cut(PowerCut cut, uint64_t salt);

 private:
  using Inode = std::pair<dev_t, ino_t>;
  using FileId = uint64_t;  // unlike an inode's number, never used again
  struct File {
    std::string bytes;  // those that are durable
    mode_t mode = 0600;
    bool dirty = true;
  };
  struct Entry {
    bool directory = false;
    FileId file = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Listing = std::map<std::string, Entry>;

  FileId IdOf(int fd);
  Listing List(const std::string& directory);
  void MakeDurable(const std::string& directory);
  void CutDirectory(const std::string& directory, PowerCut cut, uint64_t salt);

  std::map<std::string, Listing> durable_;  // by directory; roots and what was synced
  std::map<Inode, FileId> ids_;
  std::map<FileId, File> files_;
  FileId last_id_ = 0;
  std::map<std::string, bool> roots_;
};

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_PRELOAD_DURABLE_STATE_H_
