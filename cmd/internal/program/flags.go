package program

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus/server/certs"
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

// apart is the annotation of flags that exclude each other. Its values are their names.
const apart = "hookfabric_apart"

// Apart allows at most one of these flags of c. If the command line has one, the environment
// variables of the others are ignored.
func Apart(c *cobra.Command, names ...string) {
	for _, name := range names {
		annotate(c.Flags().Lookup(name), apart, names)
	}
}

func annotate(f *pflag.Flag, key string, values []string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = values
}

// given returns the names of the flags that are set.
func given(flags *pflag.FlagSet) (names []string) {
	flags.Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// onlyOne returns an error if flags exclude each other.
func onlyOne(c *cobra.Command) (err error) {
	set := given(c.Flags())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		both := slices.DeleteFunc(slices.Clone(f.Annotations[apart]), func(name string) bool { return !slices.Contains(set, name) })
		if len(both) > 1 && err == nil {
			err = UsageError("--%s contradict each other; use one of them. See '%s --help'", strings.Join(both, " and --"), c.CommandPath())
		}
	})
	return err
}

// Completes lets shells complete a flag of c with fixed words.
func Completes(c *cobra.Command, flag string, words ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the program names an undefined flag
	}
}

// TLSFlags declares the TLS flags of a NATS client.
func TLSFlags(f *pflag.FlagSet, files *certs.Files) {
	f.StringVar(&files.CA, "tls-ca", "", "PEM file of CA certificates that verify the NATS servers (default: the system's CA certificates)")
	f.StringVar(&files.Cert, "tls-cert", "", "PEM file of the client certificate for the NATS servers (default: none)")
	f.StringVar(&files.Key, "tls-key", "", "PEM file of the private key of --tls-cert")
}

// ExplicitTLS reports whether the command line has one of them.
func ExplicitTLS(f *pflag.FlagSet) bool {
	return Explicit(f, "tls-ca") || Explicit(f, "tls-cert") || Explicit(f, "tls-key")
}

// HTTPAuthoritiesFlag declares the flag with the CA bundle of an HTTP server.
func HTTPAuthoritiesFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "http-tls-ca", "", "PEM file of CA certificates that verify HTTP clients on non-loopback addresses; empty: clients need no certificate")
}

// FromEnvironment sets each flag that is not set from its environment variable: --ready-pools is
// HOOKFABRIC_READY_POOLS. [Run] calls it for every command.
func FromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	explicit := given(flags)
	open, sealed := unsealed(flags, explicit)
	flags.VisitAll(func(f *pflag.Flag) {
		if sealed && !slices.Contains(open, f.Name) {
			return
		}
		name := EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v, ok := os.LookupEnv(name)
		if f.Changed || !ok || v == "" || f.Name == "help" || f.Name == "version" {
			return
		}
		if slices.ContainsFunc(f.Annotations[apart], func(other string) bool { return slices.Contains(explicit, other) }) {
			return
		}
		if err := flags.Set(f.Name, v); err != nil {
			errs = append(errs, UsageError("%s: %w", name, err))
		}
		annotate(f, environment, []string{name})
	})
	return errors.Join(errs...)
}

// seals is the annotation of a flag of [Seal]. Its values are the flags that the environment may set.
const seals = "hookfabric_seals"

// Seal makes a flag ignore environment variables, except those of the flags open, if the command line
// has it. A process that can set variables then cannot change the result.
func Seal(flags *pflag.FlagSet, flag string, open ...string) {
	annotate(flags.Lookup(flag), seals, open)
}

// unsealed reports whether the command line has a sealing flag, and the flags that the environment may
// still set.
func unsealed(flags *pflag.FlagSet, explicit []string) (open []string, sealed bool) {
	for _, name := range explicit {
		if f := flags.Lookup(name); f != nil && f.Annotations[seals] != nil {
			return f.Annotations[seals], true
		}
	}
	return nil, false
}

// environment is the annotation of flags that the environment set.
const environment = "hookfabric_environment"

// Explicit reports whether the command line has a flag.
func Explicit(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	return f != nil && f.Changed && len(f.Annotations[environment]) == 0
}
