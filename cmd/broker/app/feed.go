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

// feedSince is how far back the feed begins unless it is said otherwise.
const feedSince = "1h"

// maxFeedLimit bounds the records that are held back to show the last ones.
const maxFeedLimit = 100_000

// toldDepth bounds the records that wait to be shown while nothing is kept.
const toldDepth = 1 << 12

// feed is what an operator wants to see of the record.
type feed struct {
	remote
	wish         record.Wish
	since, until string
	limit        int
	follow, json bool

	filter   *record.Filter
	out, say io.Writer
	held     []string // the last lines of the history, while there is a limit
	caughtUp bool
}

// feedCommand shows what was decided.
func feedCommand() *cobra.Command {
	f := new(feed)
	var decision, event string
	c := &cobra.Command{
		Use: "feed", Short: "Show what was decided: the record of verdicts, and with --follow what comes", Args: program.NoArgs,
		Long: "feed shows one line per verdict, the oldest first: when, what was decided, at which event, for which agent, about\n" +
			"which tool, how long that took, why, and what came of asking each hook. --json prints the records as they are kept.\n" +
			"With --follow it goes on with what comes, without a gap; what comes shows a fifth of a second later.\n" +
			"It says on standard error when records were dropped, or when what is asked for is not there any more.",
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
	l.StringVar(&f.wish.Agent, "agent", "", "only of these agents: a name, or a pattern such as build-*")
	l.StringVar(&decision, "decision", "", "only verdicts that came to this, such as deny")
	l.StringVar(&event, "event", "", "only at this event, such as PreToolUse")
	l.StringVar(&f.wish.Tool, "tool", "", "only about these tools: a name or a pattern")
	l.StringVar(&f.wish.Hook, "hook", "", "only where a hook of that name, or pattern, was asked")
	l.StringVar(&f.since, "since", feedSince, "from then on: how long ago, such as 90m or 2d, or a time such as 2026-11-21T10:00:00Z")
	l.StringVar(&f.until, "until", "", "before then, in the same forms")
	l.BoolVar(&f.follow, "follow", false, "go on with what comes")
	l.BoolVar(&f.json, "json", false, "print each record as a line of JSON")
	l.IntVar(&f.limit, "limit", 0, "only the last so many of what was there already; 0: all")
	return c
}

// check refuses what could never show anything.
func (f *feed) check() (err error) {
	if f.wish.Event != "" {
		if _, err := schema.ParseEventType(string(f.wish.Event)); err != nil {
			return program.UsageError("--event: %w", err)
		}
	}
	if d := f.wish.Decision; d != "" && !slices.Contains(decisions(), string(d)) {
		return program.UsageError("--decision is %q; write one of %s", d, strings.Join(decisions(), ", "))
	}
	switch {
	case f.limit < 0 || f.limit > maxFeedLimit:
		return program.UsageError("--limit is %d; write how many records you want, at most %d", f.limit, maxFeedLimit)
	case f.follow && f.until != "":
		return program.UsageError("--until ends what --follow goes on with; leave one of them out")
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

// decisions are all that a verdict may come to.
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

// moment reads how long before now something was, or when; zero: nothing is said.
func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	ago, err := program.ParseDuration(s)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%q is neither how long ago, such as 90m or 2d, nor a time such as 2026-11-21T10:00:00Z", s)
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
	looking, heeded := f.heeding(connecting)
	st, err := record.Look(looking, js)
	heeded()
	switch {
	case err != nil && denied(looking) != nil:
		return denied(looking)
	case errors.Is(err, record.ErrNone) && f.follow:
		fmt.Fprintf(f.say, "%v: its brokers run with --record off, or none has been started yet; what comes is shown\n", err)
		return f.listen(ctx, nc)
	case errors.Is(err, record.ErrNone):
		return fmt.Errorf("%w: its brokers run with --record off, or none has been started yet; --follow shows what comes", err)
	case err != nil:
		return fmt.Errorf("the record can not be read at %s, or not with these credentials: %w", bus.RedactURL(f.url), err)
	}
	if err := f.reckon(&st); err != nil {
		return err
	}
	err = record.Read(ctx, js, record.Span{Since: f.wish.Since, Follow: f.follow, CaughtUp: f.history}, f.batch)
	if f.follow && ctx.Err() != nil {
		return nil // somebody has seen enough
	}
	return err
}

// reckon takes the server's clock for what was said in times ago, and says what is not
// there any more.
func (f *feed) reckon(st *record.State) (err error) {
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
			from = "only what was decided since " + st.First.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(f.say, "%s is kept: what was before is gone, by --record-age or --record-bytes of the brokers\n", from)
	}
	return nil
}

// batch shows what is wanted of a message.
func (f *feed) batch(b *record.Batch) error {
	if b.Gone > 0 {
		fmt.Fprintf(f.say, "%d messages with records became too old, or made room for newer ones, before they were read\n", b.Gone)
	}
	if b.Dropped > 0 {
		fmt.Fprintf(f.say, "%d records of the broker %s were dropped before %s\n", b.Dropped, word(b.Broker), b.Stored.UTC().Format(time.RFC3339))
	}
	for _, line := range b.Lines {
		rec, err := f.filter.Pick(line, b.Stored)
		if err != nil {
			fmt.Fprintf(f.say, "message %d of the record: %v\n", b.Sequence, err)
			continue
		}
		if rec == nil {
			continue
		}
		if err := f.show(rec, line); err != nil {
			return err
		}
	}
	return nil
}

// show prints a record, or holds it back while only the last ones are wanted.
func (f *feed) show(rec *schema.Record, line []byte) error {
	text := string(line)
	if !f.json {
		text = feedLine(rec)
	}
	if f.limit == 0 || f.caughtUp {
		return f.print(text)
	}
	if len(f.held) == 2*f.limit { // so that the rest is not moved each time
		f.held = append(f.held[:0], f.held[f.limit:]...)
	}
	f.held = append(f.held, text)
	return nil
}

// history prints what was held back.
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
	if _, err := fmt.Fprintln(f.out, text); err != nil {
		return fmt.Errorf("writing the feed: %w", err)
	}
	return nil
}

// listen shows what is told while nothing is kept.
func (f *feed) listen(ctx context.Context, nc *nats.Conn) error {
	f.caughtUp = true
	told := make(chan *nats.Msg, toldDepth)
	sub, err := nc.ChanSubscribe(bus.FeedsWildcard, told)
	if err != nil {
		return fmt.Errorf("listening to the feed: %w", err)
	}
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-told:
			if n, err := sub.Dropped(); err == nil && n > missed {
				fmt.Fprintf(f.say, "%d records were dropped before they could be shown: more come than can be written here; ask for fewer, or have the brokers keep them (--record)\n", n-missed)
				missed = n
			}
			rec, err := f.filter.Pick(m.Data, time.Now())
			if err != nil {
				fmt.Fprintf(f.say, "%s: %v\n", m.Subject, err)
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
