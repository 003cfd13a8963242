package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"
)

var injectSpec = specOptions{
	hostPaths: hostPaths,
	kinds:     []string{"huawei.com/npu", "huawei.com/npu", "vendor.example/gpu"},
	devices:   []string{"a", "b", "c", "0"},
	version:   "1.1.0",
}

var fileNames = []string{
	"a.json", "b.json", "c.json", "A.json", "0.json", "huawei.com-npu_x.json", ".hidden.json", ".json", "a b.json", "é.json", "a.json.json",
	"a.yaml", "b.yaml", "z.yaml", ".yaml", "a.yml", "a.JSON", "a.json.tmp", "a.json~", "json", "a",
}

// injectCase asks for devices of several directories.
func (r random) injectCase(root string) (testCase, error) {
	for {
		c, err := r.tryInjectCase(root)
		// Where a file crashes the reference there is no result to compare. Spec cases have such files.
		if err != nil || !c.Expect.crashed() {
			return c, err
		}
	}
}

func (r random) tryInjectCase(root string) (testCase, error) {
	c := testCase{Group: "inject", Op: "inject", Host: map[string]any{}}
	for range 1 + r.IntN(3) {
		dir := map[string]string{}
		for range r.IntN(4) {
			name := pick(r, fileNames)
			content := r.injectFile(name)
			for !isCertain(name, content) {
				content = r.injectFile(name)
			}
			dir[name] = content
		}
		c.Dirs = append(c.Dirs, dir)
	}

	base, err := os.MkdirTemp(root, "")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(base)
	var dirs []string
	for i, files := range c.Dirs {
		dir := filepath.Join(base, "d"+strconv.Itoa(i))
		dirs = append(dirs, dir)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return c, err
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				return c, err
			}
		}
	}
	config, err := r.ociConfig()
	if err != nil {
		return c, err
	}
	var resolvable []string
	c.Expect = guard(func() result {
		cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(dirs...))
		if err != nil {
			return failed(err)
		}
		resolvable = cache.ListDevices()
		c.Devices = pointer(r.request(resolvable))
		c.Host = hostOf(cache)
		expect := inject(cache, config, *c.Devices)
		expect["listDevices"] = append([]string{}, resolvable...)
		errs := []map[string]string{}
		for path, list := range cache.GetErrors() {
			errs = append(errs, map[string]string{"file": strings.TrimPrefix(path, base+"/"), "error": list[0].Error()})
		}
		slices.SortFunc(errs, func(a, b map[string]string) int { return strings.Compare(a["file"], b["file"]) })
		expect["fileErrors"] = errs
		if text, isText := expect["error"].(string); isText {
			expect["error"] = strings.ReplaceAll(text, base, "$ROOT")
		}
		for _, e := range errs {
			e["error"] = strings.ReplaceAll(e["error"], base, "$ROOT")
		}
		return expect
	})
	if c.Expect.ok() {
		if err := r.vary(config, c.Expect["oci"]); err != nil {
			return c, err
		}
	}
	c.OCI = config
	return c, nil
}

// isCertain tells whether any library must accept or refuse the file: freedom there changes the
// meaning of all other files.
func isCertain(name, content string) bool {
	certain := !leftOut(name, content)
	guard(func() result {
		raw, err := cdi.ParseSpec([]byte(content))
		accepted := err == nil && raw != nil
		for _, trait := range classify(name, content, accepted).traits {
			certain = certain && trait == "valid-json-refused"
		}
		return nil
	})
	return certain
}

func (r random) injectFile(name string) string {
	if r.chance(8) {
		return r.hostileText()
	}
	o := injectSpec
	if r.chance(10) {
		o.version = ""
	}
	spec := r.validSpec(o)
	if r.chance(20) {
		r.mutate(spec)
	}
	if filepath.Ext(name) == ".yaml" {
		return r.toYAML(spec)
	}
	return r.toJSON(spec)
}

func (r random) request(resolvable []string) []string {
	names := []string{}
	for range r.IntN(5) {
		switch {
		case len(resolvable) > 0 && !r.chance(4):
			names = append(names, pick(r, resolvable))
		case len(resolvable) == 0 && r.chance(40):
		default:
			names = append(names, r.of("huawei.com/npu=a", "huawei.com/npu=none", "a", "", "/dev/null", "huawei.com/npu=", "é"))
		}
	}
	return names
}

// hostOf records what injection may look up.
func hostOf(cache *cdi.Cache) map[string]any {
	host := map[string]any{}
	record := func(edits *specs.ContainerEdits) {
		for _, node := range edits.DeviceNodes {
			path := node.HostPath
			if path == "" {
				path = node.Path
			}
			host[path] = lstat(path)
		}
	}
	for _, vendor := range cache.ListVendors() {
		for _, spec := range cache.GetVendorSpecs(vendor) {
			record(&spec.ContainerEdits)
			for i := range spec.Devices {
				record(&spec.Devices[i].ContainerEdits)
			}
		}
	}
	return host
}

func inject(cache *cdi.Cache, config map[string]any, devices []string) result {
	text, err := json.Marshal(config)
	if err != nil {
		return failed(err)
	}
	var spec oci.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return failed(err)
	}
	unresolved, err := cache.InjectDevices(&spec, devices...)
	if err != nil {
		expect := failed(err)
		expect["unresolved"] = append([]string{}, unresolved...)
		return expect
	}
	return result{"ok": true, "oci": &spec}
}

// Members that injection adds to, with whether they are arrays.
var growing = map[string]bool{
	"process": false, "process/env": true, "process/user": false, "process/user/additionalGids": true, "hooks": false,
	"hooks/prestart": true, "hooks/createContainer": true, "mounts": true, "linux": false, "linux/devices": true,
	"linux/resources": false, "linux/resources/devices": true, "linux/netDevices": false, "linux/intelRdt": false,
}

// emptyMember is a member without content, in one of the ways to write it.
func (r random) emptyMember(isArray bool) any {
	switch {
	case r.chance(50):
		return nil
	case isArray:
		return []any{}
	}
	return map[string]any{}
}

// vary writes members that injection creates as null or empty, which is the same to the reference.
func (r random) vary(config map[string]any, after any) error {
	if !r.chance(20) {
		return nil
	}
	text, err := json.Marshal(after)
	if err != nil {
		return err
	}
	var result map[string]any
	if err := json.Unmarshal(text, &result); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(growing)) {
		names := strings.Split(path, "/")
		from, to := config, result
		for i, name := range names {
			if i < len(names)-1 {
				from, _ = from[name].(map[string]any)
				to, _ = to[name].(map[string]any)
				continue
			}
			_, before := from[name]
			member, now := to[name]
			if user, isObject := member.(map[string]any); isObject && name == "user" {
				_, now = user["additionalGids"] // else only the typed structure is there
			}
			if from != nil && !before && now && r.chance(50) {
				from[name] = r.emptyMember(growing[path])
			}
		}
	}
	return nil
}
