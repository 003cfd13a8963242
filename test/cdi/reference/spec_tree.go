package main

import "strconv"

// specOptions says what a made-up spec refers to.
type specOptions struct {
	hostPaths []string // of device nodes
	kinds     []string
	devices   []string
	version   string // "" = any
}

var anySpec = specOptions{
	hostPaths: []string{"/dev/davinci0", "/dev/null", "/dev/davinci_manager", "dev/x", "/dev/../x", "/dev/vdavinci100"},
	kinds: []string{
		"huawei.com/npu", "huawei.com/npu", "k8s.npu.huawei.com/claim", "vendor.example/class", "a/b", "HUAWEI.COM/NPU",
		"v-1.x_y/c_1-2", "huawei.com/npu.x", "huawei/a9", "a.b.c/" + long(300),
	},
	devices: []string{
		"a", "0", "npu-0", "npu-1", "b.c", "x:y", "A_1", "9f0e5a52-7ba5-4a0d-8f5c-0b9d0c2f3c11-npu-0", "all", long(300),
	},
}

var versions = []string{"0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"}

// validSpec uses every field now and then, and with "1.1.0", the usual version, is valid.
func (r random) validSpec(o specOptions) *value {
	version := o.version
	switch {
	case version != "":
	case r.chance(78):
		version = "1.1.0"
	case r.chance(80):
		version = pick(r, versions)
	default:
		version = "v" + pick(r, versions)
	}
	spec := newObject().add("cdiVersion", str(version)).add("kind", str(pick(r, o.kinds)))
	if r.chance(15) {
		spec.add("annotations", r.annotations())
	}
	devices := list()
	used := map[string]bool{}
	for range 1 + r.IntN(3) {
		name := pick(r, o.devices)
		if used[name] && r.chance(98) {
			continue
		}
		used[name] = true
		devices.items = append(devices.items, r.device(name, o))
	}
	spec.add("devices", devices)
	if r.chance(35) {
		spec.add("containerEdits", r.edits(o, r.IntN(3)))
	}
	if r.chance(20) {
		r.shuffleMembers(spec)
	}
	return spec
}

func (r random) device(name string, o specOptions) *value {
	device := newObject().add("name", str(name))
	if r.chance(10) {
		device.add("annotations", r.annotations())
	}
	return device.add("containerEdits", r.edits(o, 1+r.IntN(3)))
}

func (r random) shuffleMembers(v *value) {
	r.Shuffle(len(v.items), func(i, j int) {
		v.items[i], v.items[j] = v.items[j], v.items[i]
		v.keys[i], v.keys[j] = v.keys[j], v.keys[i]
	})
}

func (r random) annotations() *value {
	v := newObject()
	for range r.IntN(3) {
		v.add(r.of("a", "example.com/key", "UP.com/X", "-a", "x/", "", long(63), "a/b/c", "é"), str(r.of("1", "", "text", "a: b")))
	}
	if len(v.keys) == 2 && v.keys[0] == v.keys[1] {
		v.remove(1)
	}
	return v
}

// edits has `fields` different members.
func (r random) edits(o specOptions, fields int) *value {
	makers := []struct {
		name string
		make func() *value
	}{
		{"env", func() *value { return r.many(3, func() *value { return str(r.env()) }) }},
		{"deviceNodes", func() *value { return r.many(3, func() *value { return r.deviceNode(o) }) }},
		{"deviceNodes", func() *value { return r.many(2, func() *value { return r.deviceNode(o) }) }},
		{"netDevices", func() *value { return r.netDevices() }},
		{"hooks", func() *value { return r.many(2, r.hook) }},
		{"mounts", func() *value { return r.many(3, r.mount) }},
		{"mounts", func() *value { return r.many(3, r.mount) }},
		{"intelRdt", r.intelRdt},
		{"additionalGids", func() *value {
			return r.many(3, func() *value { return lit(r.of("0", "5", "100", "4294967295")) })
		}},
	}
	v := newObject()
	r.Shuffle(len(makers), func(i, j int) { makers[i], makers[j] = makers[j], makers[i] })
	for _, m := range makers {
		if len(v.keys) >= fields {
			break
		}
		if v.get(m.name) == nil {
			v.add(m.name, m.make())
		}
	}
	return v
}

func (r random) many(limit int, item func() *value) *value {
	v := list()
	for range 1 + r.IntN(limit) {
		v.items = append(v.items, item())
	}
	return v
}

func (r random) env() string {
	return r.of("A=1", "A=2", "B=", "ASCEND_VISIBLE_DEVICES=0,1", "PATH=/bin", "C=a=b", " =1", "D=a b", "E=é", "F=#", "G=: x",
		"H='", "I=\"q\"", "J=\\", "K=😀", "A.B=x", "L=a\nb")
}

func (r random) deviceNode(o specOptions) *value {
	v := newObject()
	hostPath := pick(r, o.hostPaths)
	if r.chance(60) {
		v.add("path", str(hostPath))
		if r.chance(10) {
			v.add("hostPath", str(""))
		}
	} else {
		v.add("path", str(r.of("/dev/davinci0", "/dev/npu", "/dev/null", "x"))).add("hostPath", str(hostPath))
	}
	if r.chance(40) {
		v.add("type", str(r.of("", "b", "c", "c", "u", "p")))
	}
	if r.chance(35) {
		v.add("major", lit(r.of("0", "1", "236", "2147483648", "9223372036854775807")))
	}
	if r.chance(30) {
		v.add("minor", lit(r.of("0", "3", "255", "9223372036854775807")))
	}
	if r.chance(30) {
		v.add("fileMode", lit(r.of("0", "438", "384", "432", "8624", "4294967295")))
	}
	if r.chance(30) {
		v.add("permissions", str(r.of("", "r", "rw", "rwm", "mrw", "rrr", "none")))
	}
	if r.chance(15) {
		v.add("uid", lit(r.of("0", "1000", "4294967295")))
	}
	if r.chance(15) {
		v.add("gid", lit(r.of("0", "1000", "4294967295")))
	}
	return v
}

func (r random) netDevices() *value {
	v := list()
	for i := range 1 + r.IntN(2) {
		v.items = append(v.items, newObject().add("hostInterfaceName", str("eth"+strconv.Itoa(i))).
			add("name", str(r.of("net", "roce")+strconv.Itoa(i))))
	}
	return v
}

func (r random) hook() *value {
	v := newObject().
		add("hookName", str(r.of("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"))).
		add("path", str(r.of("/usr/bin/hook", "hook", "/h")))
	if r.chance(40) {
		v.add("args", strs("hook", r.of("--x", "", "é")))
	}
	if r.chance(30) {
		v.add("env", strs(r.env()))
	}
	if r.chance(30) {
		v.add("timeout", lit(r.of("0", "1", "30", "-1", "9223372036854775807")))
	}
	return v
}

func (r random) mount() *value {
	v := newObject().add("hostPath", str(r.of("/usr/local/Ascend/driver", "/opt/x", "rel"))).
		add("containerPath", str(r.of("/usr/local/Ascend/driver", "/a", "/a/b", "/a/b/c", "/a/./b/", "/a//b", "/", "a", "a/b", "/data", "..",
			"/a/../..")))
	if r.chance(60) {
		options := list()
		for range r.IntN(4) {
			options.items = append(options.items, str(r.of("ro", "rw", "bind", "rbind", "idmap", "ridmap", "nosuid", "rprivate", "")))
		}
		v.add("options", options)
	}
	if r.chance(30) {
		v.add("type", str(r.of("", "bind", "none", "tmpfs")))
	}
	return v
}

func (r random) intelRdt() *value {
	v := newObject()
	if r.chance(60) {
		v.add("closID", str(r.of("", "/", "guaranteed", "...", "a b")))
	}
	if r.chance(40) {
		v.add("l3CacheSchema", str("L3:0=ff"))
	}
	if r.chance(40) {
		v.add("memBwSchema", str("MB:0=50"))
	}
	if r.chance(30) {
		v.add("schemata", r.many(2, func() *value { return str("L3:0=ff") }))
	}
	if r.chance(30) {
		v.add("enableMonitoring", lit(r.of("true", "false")))
	}
	return v
}
