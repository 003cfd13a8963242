package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// differences is the list of reasons for which another library may differ.
type differences []struct {
	Cause  string `json:"cause"`
	Trait  string `json:"trait"`
	Reason string `json:"reason"`
}

func readDifferences(path string) (differences, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d differences
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// check refuses a case that claims a freedom which is not on the list.
func (d differences) check(c testCase) error {
	if c.Cause == "" {
		return nil
	}
	for _, difference := range d {
		if difference.Cause == c.Cause {
			if difference.Trait != "" && !slices.Contains(c.Traits, difference.Trait) {
				return fmt.Errorf("cause %s without the trait %s", c.Cause, difference.Trait)
			}
			return nil
		}
	}
	return fmt.Errorf("cause %s is not on the list of differences", c.Cause)
}
