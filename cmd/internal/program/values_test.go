package program_test

import (
	"math"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

func TestDurationsMayHaveDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "-1s": -time.Second,
	} {
		if got, err := program.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "7", "7days", "-1d", "1d-1h", "1d24h", "1.5d", "99999d", "1h2d"} {
		if got, err := program.ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestSizesHaveUnits(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "1KiB": 1 << 10, "3 MiB": 3 << 20, "1GiB": 1 << 30, "2TiB": 2 << 40, "9223372036854775807": math.MaxInt64} {
		if got, err := program.ParseBytes(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1GB", "1.5GiB", "9223372036854775807KiB", "1kib"} {
		if got, err := program.ParseBytes(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestFlagsShowValuesInTheFormThatTheyAccept(t *testing.T) {
	var d time.Duration
	var n int64
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	program.DurationVar(f, &d, "age", 7*24*time.Hour, "how old")
	program.BytesVar(f, &n, "bytes", 1<<30, "how large")
	if age, bytes := f.Lookup("age").DefValue, f.Lookup("bytes").DefValue; age != "7d" || bytes != "1GiB" {
		t.Errorf("the defaults are shown as %q and %q", age, bytes)
	}
	if err := f.Parse([]string{"--age", "36h", "--bytes", "3MiB"}); err != nil || d != 36*time.Hour || n != 3<<20 {
		t.Errorf("%v, %d, %v", d, n, err)
	}
	if age, bytes := f.Lookup("age").Value.String(), f.Lookup("bytes").Value.String(); age != "36h0m0s" || bytes != "3MiB" {
		t.Errorf("the values are shown as %q and %q", age, bytes)
	}
	for _, wrong := range []string{"--age=", "--age=soon", "--bytes=much"} {
		if f.Parse([]string{wrong}) == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
}
