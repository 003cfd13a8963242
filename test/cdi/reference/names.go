package main

import (
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
)

// oddName is made of pieces that rules for names tell apart.
func (r random) oddName() string {
	name := ""
	for range r.IntN(5) {
		name += r.of("a", "Z", "0", "9", "npu", "huawei.com", ".", "-", "_", ":", "=", "/", " ", "é", "\u0661", "😀", "\x00", "\n",
			"%", "$", long(70), "claim", "", "\u00e9\u0301")
	}
	return name
}

func (r random) qualifiedName() string {
	part := func(good, bad []string) string {
		switch {
		case r.chance(75):
			return pick(r, good)
		case r.chance(60):
			return pick(r, bad)
		}
		return r.oddName()
	}
	switch {
	case r.chance(8):
		return r.of("", "/", "=", "/=", "a", "/dev/null", "a/b", "a=b", "/a/b=c", "a/=b", "=a/b", "a//b=c", "a/b=c=d", "a/b==c", "a/b/c=d",
			"a=b/c=d", "a/b= c", " a/b=c", "a/b=c ", "a/b=c\n", "a/b=c,d/e=f")
	case r.chance(8):
		return r.oddName()
	}
	kinds := []string{"huawei.com/npu", "k8s.npu.huawei.com/claim", "a/b", "HUAWEI.com/N-P_U.x", "a0/b9"}
	names := []string{"0", "a", "npu-0", "x:y", "a.b_c-d", "9f0e5a52-7ba5-4a0d-8f5c-0b9d0c2f3c11-npu-0", long(300)}
	return part(kinds, badKinds) + "=" + part(names, badDeviceNames)
}

func (r random) nameCase() testCase {
	switch {
	case r.chance(55):
		name := r.qualifiedName()
		return testCase{Group: "qualified-name", Op: "parse-qualified", Text: &name, Expect: guard(func() result {
			lenientVendor, lenientClass, lenientName := parser.ParseDevice(name)
			vendor, class, device, err := parser.ParseQualifiedName(name)
			return result{"ok": err == nil, "error": errorText(err), "vendor": vendor, "class": class, "name": device,
				"parseDevice": []string{lenientVendor, lenientClass, lenientName}}
		})}
	case r.chance(75):
		args := []string{r.of("huawei.npu", "npu", "a", r.oddName(), r.oddName()), r.of("davinci0", "0", "a/b", r.oddName(), r.oddName(), long(54))}
		return testCase{Group: "annotation-key", Op: "annotation-key", Args: args, Expect: guard(func() result {
			key, err := cdi.AnnotationKey(args[0], args[1])
			if err != nil {
				return failed(err)
			}
			return result{"ok": true, "key": key}
		})}
	}
	args := []string{r.of("huawei.com", r.oddName()), r.of("npu", r.oddName()), r.of("a", "..", "../../etc/x", "x.json", r.oddName(), r.oddName())}
	return testCase{Group: "transient-name", Op: "transient-name", Args: args, Expect: guard(func() result {
		return result{"ok": true, "name": cdi.GenerateTransientSpecName(args[0], args[1], args[2])}
	})}
}
