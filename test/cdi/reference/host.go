package main

import (
	"golang.org/x/sys/unix"
)

// Paths that are the same on most machines; each case records what they were on this one.
var hostPaths = []string{
	"/dev/null", "/dev/null", "/dev/zero", "/dev/full", "/dev/loop0", "/etc/hostname", "/proc/self/cwd", "/dev/davinci99",
}

// lstat is the entry of a case's "host": null if the path is missing.
func lstat(path string) any {
	var info unix.Stat_t
	if err := unix.Lstat(path, &info); err != nil {
		return nil
	}
	kinds := map[uint32]string{unix.S_IFCHR: "c", unix.S_IFBLK: "b", unix.S_IFIFO: "p", unix.S_IFDIR: "dir", unix.S_IFLNK: "link"}
	kind, ok := kinds[info.Mode&unix.S_IFMT]
	if !ok {
		kind = "file" // or a socket, which makes no difference
	}
	return map[string]any{
		"type": kind, "major": unix.Major(info.Rdev), "minor": unix.Minor(info.Rdev), "mode": info.Mode &^ unix.S_IFMT,
		"uid": info.Uid, "gid": info.Gid,
	}
}
