package main

import (
	"errors"
	"fmt"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	"tags.cncf.io/container-device-interface/specs-go"
)

// validateParsed makes the same calls of the library as cdi.ReadSpec after parsing.
func validateParsed(raw *specs.Spec) error {
	if err := specs.ValidateVersion(raw); err != nil {
		return err
	}
	vendor, class := parser.ParseQualifier(raw.Kind)
	if err := parser.ValidateVendorName(vendor); err != nil {
		return err
	}
	if err := parser.ValidateClassName(class); err != nil {
		return err
	}
	if err := (&cdi.ContainerEdits{ContainerEdits: &raw.ContainerEdits}).Validate(); err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range raw.Devices {
		device := &raw.Devices[i]
		if err := parser.ValidateDeviceName(device.Name); err != nil {
			return err
		}
		if err := (&cdi.ContainerEdits{ContainerEdits: &device.ContainerEdits}).Validate(); err != nil {
			return err
		}
		if names[device.Name] {
			return fmt.Errorf("multiple device %q", device.Name)
		}
		names[device.Name] = true
	}
	if len(names) == 0 {
		return errors.New("no devices")
	}
	return nil
}
