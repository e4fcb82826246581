package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// Run starts the fabric of a scenario and puts it under load. During the load it causes the
// faults of the scenario and random ones. For a soak it also reports what grew.
func Run(ctx context.Context, asked *scenario.Scenario, st fleet.Stage) (*report.Document, error) {
	s := withFaults(asked)
	x, err := fleet.Open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	m, settled, err := loaded(ctx, s, x)
	if err = x.End(m, err); err != nil {
		return nil, err
	}
	d := m.Document()
	if s.DrawsFaults() {
		Add(d, m)
	}
	if s.Kind == scenario.Soaking {
		addGrowth(d, m, settled)
	}
	return d, nil
}

func loaded(ctx context.Context, s *scenario.Scenario, x *fleet.Session) (*fleet.Measured, []left, error) {
	if s.Kind == scenario.Soaking {
		return soak(ctx, s, x)
	}
	m, err := x.Load(ctx, s)
	return m, nil, err
}

// withFaults returns the scenario with its random faults. A soak kills processes of the
// fabric only early, because growth shows only in processes that live long.
func withFaults(asked *scenario.Scenario) *scenario.Scenario {
	s := *asked
	if !s.DrawsFaults() {
		return &s
	}
	drawn := Draw(&s)
	if s.Kind == scenario.Soaking {
		until := schema.Duration(float64(s.For) * scenario.SoakLives)
		drawn = slices.DeleteFunc(drawn, func(f faults.Fault) bool { return f.Kind == faults.Kill && ofFabric(f.Member) && f.At > until })
		s.Fabric.Links = true
	}
	s.Faults = append(slices.Clone(s.Faults), drawn...)
	return &s
}

// Add adds the impact of the faults to the report of a load.
func Add(d *report.Document, m *fleet.Measured) {
	w := watch(m)
	all := w.felt(m.Done)
	d.Title += fmt.Sprintf(", with %d faults, seed %d", len(all), m.Scenario.Seed)
	d.Figures = append(d.Figures, figures(all)...)
	d.Tables = append(d.Tables, w.table(all))
	d.Checks = append(d.Checks, w.answered(m.Done))
	done := d.Check("every planned fault happened")
	done.Seen = int64(len(m.Done))
	if !m.Early { // else some faults, and the time after the last one, were still to come
		done.Least = int64(max(len(m.Scenario.Faults), 1))
		d.Checks = append(d.Checks, w.recovered(m.Done, m.Scenario.Quiet()/2))
	}
}

// Limits of the random values.
const (
	// The latency that a delay adds, and the bytes per second of a slow network.
	latencyLeast, latencyMost = 20 * time.Millisecond, 200 * time.Millisecond
	rateLeast, rateMost       = 64 << 10, 512 << 10
)

// dice draw faults for a scenario.
type dice struct {
	scenario.Chaos
	hasLink func(member string) bool
}

// Draw draws the faults of a scenario, by its seed. None lasts beyond the beginning
// of its quiet end.
func Draw(s *scenario.Scenario) []faults.Fault {
	d, members, long := &dice{Chaos: s.Chaos, hasLink: s.HasLink}, s.Members(), s.For.Std()-s.Quiet()
	random := rand.New(rand.NewPCG(s.Seed, 0xc4a05))
	var all []faults.Fault
	if len(d.Lives) > 0 {
		all = d.kills(random, members, long)
	}
	for range d.sequences() {
		at := d.pause(random)
		for {
			f := d.fault(random, members)
			if f.Kind == "" || at+f.For.Std() > long {
				break
			}
			f.At = schema.Duration(at.Round(time.Millisecond))
			all = append(all, f)
			at += f.For.Std() + d.pause(random)
		}
	}
	slices.SortStableFunc(all, func(a, b faults.Fault) int { return int(a.At - b.At) })
	return all
}

// sequences returns how many sequences of faults run at the same time.
func (d *dice) sequences() int {
	if len(d.Lives) > 0 {
		return 0
	}
	return max(d.Together, 1)
}

// mostOfRun is the longest average life, as a part of the time with faults, so that each
// process dies at least once.
const mostOfRun = 0.6

// kills draws when each process is killed: it lives half to one and a half of the average life
// of its kind.
func (d *dice) kills(random *rand.Rand, members []string, long time.Duration) (all []faults.Fault) {
	for _, m := range members {
		life := min(d.Lives[faults.KindOf(m)].Std(), time.Duration(mostOfRun*float64(long)))
		if life <= 0 {
			continue
		}
		for at := life/2 + within(random, 0, life); at < long; at += life/2 + within(random, 0, life) {
			all = append(all, faults.Fault{Kind: faults.Kill, Member: m, At: schema.Duration(at)})
		}
	}
	return all
}

// pause returns a random pause, half to one and a half of the average.
func (d *dice) pause(random *rand.Rand) time.Duration {
	return d.Pause.Std()/2 + within(random, 0, d.Pause.Std())
}

// fault draws a kind first and then its member, so that all kinds are equally frequent. It
// returns the zero Fault if no member can have a fault.
func (d *dice) fault(random *rand.Rand, members []string) faults.Fault {
	var kinds []faults.Kind
	for _, k := range faults.Kinds() {
		if d.may(k) && len(d.victims(k, members)) > 0 {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return faults.Fault{}
	}
	k := kinds[random.IntN(len(kinds))]
	victims := d.victims(k, members)
	f := faults.Fault{Kind: k, Member: victims[random.IntN(len(victims))]}
	if k != faults.Reset {
		f.For = schema.Duration(within(random, scenario.ShortestFault, d.Longest.Std()).Round(time.Millisecond))
	}
	switch k {
	case faults.Delay:
		latency := within(random, latencyLeast, latencyMost).Round(time.Millisecond)
		f.Latency, f.Jitter = schema.Duration(latency), schema.Duration(latency/2)
	case faults.Slow:
		f.Rate = rateLeast + random.Int64N(rateMost-rateLeast)
	}
	return f
}

func (d *dice) may(k faults.Kind) bool { return len(d.Kinds) == 0 || slices.Contains(d.Kinds, k) }

// victims returns the members that can have a fault of that kind.
func (d *dice) victims(k faults.Kind, members []string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(m string) bool {
		meant := len(d.Members) == 0 || slices.ContainsFunc(d.Members, func(glob string) bool {
			return len(faults.Matching(glob, []string{m})) > 0
		})
		return !meant || k.OnLink() && !d.hasLink(m)
	})
}

// within returns a random duration.
func within(random *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(random.Int64N(int64(most-least)))
}
