package main

import (
	"slices"

	"tags.cncf.io/container-device-interface/specs-go"
)

// minimumVersion is what the reference says if each device comes last once. Of the features of 0.4.0
// and 0.5.0 it looks at the last device only: its module asks for a Go version in which all turns of
// a loop share the variable whose address it keeps.
func minimumVersion(spec *specs.Spec) string {
	newest := ""
	turned := *spec
	for i := range spec.Devices {
		turned.Devices = append(slices.Clone(spec.Devices[i:]), spec.Devices[:i]...)
		if version, err := specs.MinimumRequiredVersion(&turned); err == nil && version > newest {
			newest = version
		}
	}
	return newest
}
