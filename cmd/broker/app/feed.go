package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// feedSince is the default of --since.
const feedSince = "1h"

// maxFeedLimit is the highest --limit.
const maxFeedLimit = 100_000

// liveDepth bounds the records that wait to be printed when there is no stream of records.
const liveDepth = 1 << 12

// feed is one call of `broker feed`.
type feed struct {
	remote
	wish         record.Wish
	since, until string
	limit        int
	follow, json bool

	filter   *record.Filter
	out, say io.Writer
	held     []string // the last lines of the history, with --limit
	caughtUp bool
}

// feedCommand is `broker feed`.
func feedCommand() *cobra.Command {
	f := new(feed)
	var decision, event string
	c := &cobra.Command{
		Use: "feed", Short: "Show the record of verdicts, and new verdicts with --follow", Args: program.NoArgs,
		Long: "feed prints one line per verdict, the oldest first: time, decision, event, agent, tool, duration, reason, and the\n" +
			"outcome of each hook. --json prints the records as they are stored. With --follow it continues with new records,\n" +
			"which appear about 200 ms after their call. It reports on stderr when records were dropped or removed.",
		Example: "  broker feed --decision deny --tool Bash --limit 20\n" +
			"  broker feed --agent 'build-*' --since 2d --json\n" +
			"  broker feed --follow",
		RunE: func(c *cobra.Command, _ []string) error {
			f.out, f.say = c.OutOrStdout(), c.ErrOrStderr()
			f.wish.Decision, f.wish.Event = schema.Decision(decision), schema.EventType(event)
			if err := f.check(); err != nil {
				return err
			}
			return f.run(c.Context())
		},
	}
	f.flags(c)
	l := c.Flags()
	l.StringVar(&f.wish.Agent, "agent", "", "only records of this agent: a name, or a pattern such as build-*")
	l.StringVar(&decision, "decision", "", "only verdicts with this decision, such as deny")
	l.StringVar(&event, "event", "", "only records of this event, such as PreToolUse")
	l.StringVar(&f.wish.Tool, "tool", "", "only records of this tool: a name or a pattern")
	l.StringVar(&f.wish.Hook, "hook", "", "only records of calls for which this hook ran: a name or a pattern")
	l.StringVar(&f.since, "since", feedSince, "only records from this time on: an age such as 90m or 2d, or a time such as 2026-11-21T10:00:00Z")
	l.StringVar(&f.until, "until", "", "only records before this time, in the same forms (default: now)")
	l.BoolVar(&f.follow, "follow", false, "continue with new records until interrupted")
	l.BoolVar(&f.json, "json", false, "print each record as one line of JSON")
	l.IntVar(&f.limit, "limit", 0, "only this many of the newest existing records; 0: all")
	return c
}

// check rejects flags that can never match a record.
func (f *feed) check() (err error) {
	if f.wish.Event != "" {
		if f.wish.Event, err = schema.ParseEventType(string(f.wish.Event)); err != nil {
			return program.UsageError("--event: %w", err)
		}
	}
	if d := f.wish.Decision; d != "" && !slices.Contains(decisions(), string(d)) {
		return program.UsageError("--decision is %q; use one of %s", d, strings.Join(decisions(), ", "))
	}
	switch {
	case f.limit < 0 || f.limit > maxFeedLimit:
		return program.UsageError("--limit is %d; use a number of records from 0 to %d", f.limit, maxFeedLimit)
	case f.follow && f.until != "":
		return program.UsageError("--until and --follow contradict each other; remove one of them")
	}
	now := time.Now()
	if f.wish.Since, err = moment(f.since, now); err != nil {
		return program.UsageError("--since: %w", err)
	}
	if f.wish.Until, err = moment(f.until, now); err != nil {
		return program.UsageError("--until: %w", err)
	}
	if f.filter, err = record.NewFilter(f.wish); err != nil {
		return program.UsageError("%w", err)
	}
	return nil
}

// decisions returns all decisions of verdicts.
func decisions() (all []string) {
	for _, t := range schema.EventTypes() {
		for _, d := range t.Decisions() {
			if !slices.Contains(all, string(d)) {
				all = append(all, string(d))
			}
		}
	}
	slices.Sort(all)
	return all
}

// moment parses an age before now, or a time; zero: s is empty.
func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	ago, err := program.ParseDuration(s)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%q is neither an age, such as 90m or 2d, nor a time, such as 2026-11-21T10:00:00Z", s)
	}
	return now.Add(-ago), nil
}

func (f *feed) run(ctx context.Context) error {
	connecting, cancel := f.bounded(ctx)
	defer cancel()
	nc, err := f.connect(connecting, "feed")
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("using JetStream: %w", err)
	}
	looking, release := f.untilDenied(connecting)
	st, err := record.Look(looking, js)
	release()
	switch {
	case err != nil && denied(looking) != nil:
		return denied(looking)
	case errors.Is(err, record.ErrNone) && f.follow:
		_ = printLine(f.say, "%v: its brokers run with --record off, or no broker has been started yet; new verdicts are shown", err)
		return f.listen(ctx, nc)
	case errors.Is(err, record.ErrNone):
		return fmt.Errorf("%w: its brokers run with --record off, or no broker has been started yet; --follow shows new verdicts", err)
	case err != nil:
		return fmt.Errorf("cannot read the record at %s: %w; check that the server runs, and that the credentials are an operator's", bus.RedactURL(f.url), err)
	}
	if err := f.useServerTime(&st); err != nil {
		return err
	}
	err = record.Read(ctx, js, record.Span{Since: f.wish.Since, Follow: f.follow, CaughtUp: f.history}, f.batch)
	if f.follow && ctx.Err() != nil {
		return nil // the user interrupted the command
	}
	return err
}

// useServerTime applies ages to the server's clock, and reports on stderr if older records were
// removed.
func (f *feed) useServerTime(st *record.State) (err error) {
	if f.wish.Since, err = moment(f.since, st.Now); err != nil {
		return err
	}
	if f.wish.Until, err = moment(f.until, st.Now); err != nil {
		return err
	}
	if f.filter, err = record.NewFilter(f.wish); err != nil {
		return err
	}
	if st.Lost && (st.First.IsZero() || st.First.After(f.wish.Since)) {
		from := "nothing"
		if !st.First.IsZero() {
			from = "only verdicts since " + st.First.UTC().Format(time.RFC3339)
		}
		_ = printLine(f.say, "%s can be shown: --record-age or --record-bytes of the brokers removed older records", from)
	}
	return nil
}

// batch shows the matching records of a message.
func (f *feed) batch(b *record.Batch) error {
	if b.Gone > 0 {
		_ = printLine(f.say, "the stream removed %d messages with records before this command read them, because of their age or for lack of room", b.Gone)
	}
	if b.Dropped > 0 {
		_ = printLine(f.say, "the broker %[2]s dropped %[1]d records before %[3]s", b.Dropped, word(b.Broker), b.Stored.UTC().Format(time.RFC3339))
	}
	for _, written := range b.Lines {
		rec, err := f.filter.Pick(written, b.Stored)
		if err != nil {
			_ = printLine(f.say, "message %d of the record: %v", b.Sequence, err)
			continue
		}
		if rec == nil {
			continue
		}
		if err := f.show(rec, written); err != nil {
			return err
		}
	}
	return nil
}

// show prints a record, or holds it back until the end of the history is known.
func (f *feed) show(rec *schema.Record, written []byte) error {
	text := string(schema.VisibleJSON(written))
	if !f.json {
		text = feedLine(rec)
	}
	if f.limit == 0 || f.caughtUp {
		return f.print(text)
	}
	if len(f.held) == 2*f.limit { // amortises the move
		f.held = append(f.held[:0], f.held[f.limit:]...)
	}
	f.held = append(f.held, text)
	return nil
}

// history prints the lines that were held back.
func (f *feed) history() error {
	f.caughtUp = true
	for _, text := range f.held[max(0, len(f.held)-f.limit):] {
		if err := f.print(text); err != nil {
			return err
		}
	}
	f.held = nil
	return nil
}

func (f *feed) print(text string) error {
	if err := printLine(f.out, "%s", text); err != nil {
		return fmt.Errorf("writing the feed: %w", err)
	}
	return nil
}

// listen shows new records when there is no stream of records.
func (f *feed) listen(ctx context.Context, nc *nats.Conn) error {
	f.caughtUp = true
	live := make(chan *nats.Msg, liveDepth)
	sub, err := nc.ChanSubscribe(bus.FeedsWildcard, live)
	if err != nil {
		return fmt.Errorf("listening to the feed: %w", err)
	}
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-live:
			if n, err := sub.Dropped(); err == nil && n > missed {
				_ = printLine(f.say, "%d records were dropped because this command prints slower than they arrive; filter them, or start the brokers with --record", n-missed)
				missed = n
			}
			rec, err := f.filter.Pick(m.Data, time.Now())
			if err != nil {
				_ = printLine(f.say, "%s: %v", m.Subject, err)
				continue
			}
			if rec == nil {
				continue
			}
			if err := f.show(rec, m.Data); err != nil {
				return err
			}
		}
	}
}
