package main

import (
	"bytes"
	"encoding/json"

	oci "github.com/opencontainers/runtime-spec/specs-go"
)

func pointer[T any](v T) *T { return &v }

// ociConfig makes up what a runtime may have before injection. It goes through the typed structures
// once, so that only injection makes a difference between it and what the reference gives.
func (r random) ociConfig() (map[string]any, error) {
	config := oci.Spec{}
	if r.chance(85) {
		config.Version = r.of("1.0.2", "1.2.0", "1.3.0")
	}
	if r.chance(80) {
		config.Process = r.process()
	}
	if r.chance(60) {
		config.Root = &oci.Root{Path: "rootfs", Readonly: r.chance(50)}
	}
	if r.chance(30) {
		config.Hostname = "h"
	}
	if r.chance(70) {
		config.Mounts = r.mounts()
	}
	if r.chance(30) {
		config.Hooks = r.hooks()
	}
	if r.chance(30) {
		config.Annotations = map[string]string{"io.kubernetes.cri.container-type": "container", "é": "a\nb"}
	}
	if r.chance(75) {
		config.Linux = r.linux()
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var plain map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a float would round
	err = decoder.Decode(&plain)
	return plain, err
}

func (r random) process() *oci.Process {
	p := &oci.Process{Terminal: r.chance(30), Cwd: r.of("/", "", "/work")}
	if r.chance(50) {
		p.User = oci.User{UID: pick(r, []uint32{0, 1000, 4294967295}), GID: pick(r, []uint32{0, 0, 1000})}
	}
	if r.chance(30) {
		p.User.AdditionalGids = pick(r, [][]uint32{{5}, {0, 10, 5}, {100, 100}, {4294967295}})
	}
	if r.chance(20) {
		p.User.Umask = pointer(uint32(18))
	}
	if r.chance(70) {
		for range r.IntN(6) {
			p.Env = append(p.Env, r.of(r.env(), "PATH=/usr/bin", "A=0", "A=00", "A", "", "=", "=x", "B", "B=9", "C=", "AA=1"))
		}
	}
	if r.chance(50) {
		p.Args = []string{"sh", "-c", "true"}
	}
	if r.chance(20) {
		p.Capabilities = &oci.LinuxCapabilities{Bounding: []string{"CAP_KILL"}}
	}
	if r.chance(20) {
		p.Rlimits = []oci.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: 1024, Soft: 1024}}
	}
	if r.chance(10) {
		p.OOMScoreAdj = pointer(-999)
	}
	return p
}

func (r random) mounts() []oci.Mount {
	var mounts []oci.Mount
	for range r.IntN(8) {
		m := oci.Mount{Destination: r.of("/proc", "/dev", "/dev/pts", "/dev/shm", "/sys", "/sys/fs/cgroup", "/a", "/a/b", "/a/b/", "/", "a", "/data",
			"/a/./b", "/usr/local/Ascend/driver", "", "..", "//", "/a/b/c/d")}
		if r.chance(70) {
			m.Type, m.Source = r.of("proc", "tmpfs", "bind"), r.of("proc", "tmpfs", "/x")
		}
		if r.chance(50) {
			m.Options = []string{"nosuid", "ro"}
		}
		mounts = append(mounts, m)
	}
	return mounts
}

func (r random) hooks() *oci.Hooks {
	h := &oci.Hooks{}
	hook := []oci.Hook{{Path: "/runtime/hook", Args: []string{"hook"}, Timeout: pointer(5)}}
	if r.chance(40) {
		h.Prestart = hook //nolint:staticcheck // as runtimes still write it
	}
	if r.chance(40) {
		h.CreateRuntime = hook
	}
	if r.chance(20) {
		h.CreateContainer = hook
	}
	if r.chance(20) {
		h.Poststop = hook
	}
	return h
}

func (r random) linux() *oci.Linux {
	l := &oci.Linux{}
	if r.chance(60) {
		l.Namespaces = []oci.LinuxNamespace{{Type: oci.PIDNamespace}, {Type: oci.MountNamespace}}
		if r.chance(45) {
			l.Namespaces = append(l.Namespaces, oci.LinuxNamespace{Type: oci.UserNamespace, Path: r.of("", "/proc/1/ns/user")})
		}
	}
	mapping := []oci.LinuxIDMapping{{ContainerID: 0, HostID: 100000, Size: 65536}}
	if r.chance(45) {
		l.UIDMappings = mapping
	}
	if r.chance(45) {
		l.GIDMappings = mapping
	}
	if r.chance(50) {
		for range r.IntN(4) {
			d := oci.LinuxDevice{Path: r.of("/dev/null", "/dev/null", "/dev/davinci0", "/dev/npu", "/dev/fuse", "x"), Type: r.of("c", "b", "p"),
				Major: pick(r, []int64{0, 10}), Minor: pick(r, []int64{0, 229})}
			if r.chance(30) {
				d.UID = pointer(uint32(0))
			}
			l.Devices = append(l.Devices, d)
		}
	}
	if r.chance(50) {
		l.Resources = &oci.LinuxResources{}
		if r.chance(60) {
			l.Resources.Devices = []oci.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
		}
		if r.chance(30) {
			l.Resources.Memory = &oci.LinuxMemory{Limit: pointer(int64(9223372036854771712))}
		}
	}
	if r.chance(15) {
		l.IntelRdt = &oci.LinuxIntelRdt{ClosID: "old", EnableMonitoring: r.chance(50)}
	}
	if r.chance(15) {
		l.NetDevices = map[string]oci.LinuxNetDevice{"eth0": {Name: "old"}, "eth7": {Name: "kept"}}
	}
	if r.chance(20) {
		l.CgroupsPath = "/kubepods/x"
	}
	if r.chance(20) {
		l.Sysctl = map[string]string{"net.ipv4.ip_forward": "1"}
	}
	if r.chance(20) {
		l.MaskedPaths = []string{"/proc/kcore"}
	}
	return l
}
