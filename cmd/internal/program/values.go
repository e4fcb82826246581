package program

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// ParseDuration is [time.ParseDuration] that also accepts days: "7d", "1d12h".
func ParseDuration(s string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a duration; use one such as 90s, 12h or 7d", s)
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, wrong
		}
		return d, nil
	}
	const day = 24 * time.Hour
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, wrong
	}
	d := time.Duration(n) * day // at most 180 years
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil || more < 0 || more >= day {
			return 0, wrong
		}
		d += more
	}
	return d, nil
}

// ParseBytes parses a size: a number of bytes, or a number of KiB, MiB, GiB or TiB.
func ParseBytes(s string) (int64, error) {
	number, shift := strings.TrimSpace(s), 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n, ok := strings.CutSuffix(number, unit); ok {
			number, shift = strings.TrimSpace(n), 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a size; use one such as 1GiB or 512MiB", s)
	}
	return n << shift, nil
}

// DurationVar declares a flag with a duration that [ParseDuration] reads.
func DurationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var(&parsed[time.Duration]{p, ParseDuration, shownDuration, "duration"}, name, usage)
}

// BytesVar declares a flag with a size that [ParseBytes] reads.
func BytesVar(f *pflag.FlagSet, p *int64, name string, value int64, usage string) {
	*p = value
	f.Var(&parsed[int64]{p, ParseBytes, shownBytes, "size"}, name, usage)
}

// parsed is a flag value with its own parser and text form.
type parsed[T any] struct {
	at    *T
	parse func(string) (T, error)
	show  func(T) string
	kind  string
}

func (v *parsed[T]) Set(s string) (err error) {
	if s == "" {
		return errors.New("the value is empty")
	}
	*v.at, err = v.parse(s)
	return err
}

func (v *parsed[T]) String() string {
	if v.at == nil { // pflag compares defaults with the zero value
		return ""
	}
	return v.show(*v.at)
}

func (v *parsed[T]) Type() string { return v.kind }

func shownDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

func shownBytes(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if shift := 10 * (4 - i); n > 0 && n%(1<<shift) == 0 {
			return fmt.Sprintf("%d%s", n>>shift, unit)
		}
	}
	return strconv.FormatInt(n, 10)
}
