// Orderly shutdown on SIGTERM and SIGINT.
#ifndef ASCEND_DRA_BASE_RUNTIME_SIGNALS_H_
#define ASCEND_DRA_BASE_RUNTIME_SIGNALS_H_

namespace ascend {

// Blocks SIGTERM and SIGINT for this thread and all it starts later, and ignores SIGPIPE (libcurl
// and sockets report broken connections by error code). Call first in main(), before any thread.
void BlockTerminationSignals();

// Waits until SIGTERM or SIGINT arrives and returns its number.
int WaitForTerminationSignal();

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_RUNTIME_SIGNALS_H_
