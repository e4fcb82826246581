package schema

import (
	"fmt"
	"time"
)

// A Duration is a time.Duration that JSON spells as Go does, such as "1.5s".
type Duration time.Duration

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the Go form of d.
func (d Duration) String() string { return time.Duration(d).String() }

// AppendText appends the Go form of d to b.
func (d Duration) AppendText(b []byte) ([]byte, error) {
	return append(b, time.Duration(d).String()...), nil
}

// MarshalText returns the Go form of d.
func (d Duration) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText reads the Go form of a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write one such as \"1.5s\"", b)
	}
	*d = Duration(v)
	return nil
}
