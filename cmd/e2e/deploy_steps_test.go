package e2e_test

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// step does one step of an example, and a second one at the same time.
func (r *running) step(what, during, promised string) {
	r.Helper()
	switch {
	case !strings.HasPrefix(what, "{"):
		r.operate(what, promised)
	case during == "":
		r.ask(what, promised)
	default:
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			r.ask(what, promised)
		}()
		r.awaitCall()
		r.operate(during, "")
		<-asked
	}
}

// operate does what an operator's command line says, and holds what it says
// against what was promised. What only looks looks until it sees it.
func (r *running) operate(line, promised string) {
	r.Helper()
	line, ours := strings.CutPrefix(line, "go run ./cmd/broker ")
	if !ours {
		r.Errorf("%q is no command of the broker", line)
		return
	}
	args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	var said string
	as := func() bool {
		var out strings.Builder
		code := app.Main(r.Context(), append(args, "--nats", r.url), strings.NewReader(""), &out, &out)
		said = out.String()
		return code == 0 && strings.Contains(said, promised)
	}
	if strings.HasPrefix(line, "round show ") {
		_ = eventually("a round as promised", as) // a timeout is reported below, with the last output
	}
	if !as() {
		r.Errorf("%s\npromised %s\nsaid %s", line, promised, said)
	}
}

// awaitCall waits until some call is under way.
func (r *running) awaitCall() {
	r.Helper()
	nc := connect(r, r.url)
	defer nc.Close()
	err := eventually("a call under way", func() bool {
		st, err := status(nc)
		return err == nil && st.InFlight > 0
	})
	if err != nil {
		r.Error(err)
	}
}

// ask asks as the shim does, and holds the verdict against what was promised.
func (r *running) ask(question, promised string) {
	r.Helper()
	id, err := uuid.NewV7()
	e := schema.Event{AgentID: "tester", EventID: id.String()}
	if err := errors.Join(err, schema.Unmarshal([]byte(question), &e)); err != nil {
		r.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), deadline)
	defer cancel()
	v, err := r.client.Ask(ctx, &e)
	if err != nil {
		r.Error(err)
		return
	}
	if len(v.Injections) > 0 {
		if err := r.client.Ack(ctx, e.AgentID, e.EventID); err != nil {
			r.Error(err)
		}
	}
	want := answerForm.FindStringSubmatch(promised)
	if want == nil {
		r.Errorf("%q is not how an answer is promised", promised)
		return
	}
	var read strings.Builder
	for _, i := range v.Injections {
		read.WriteString(i.Content)
	}
	if string(v.Decision) != want[1] || !strings.Contains(v.Reason, want[2]) || !strings.Contains(read.String(), want[3]) ||
		(want[3] == "") != (len(v.Injections) == 0) || string(v.UpdatedInput) != want[4] || string(v.UpdatedOutput) != want[5] ||
		want[6] != "" && effects(r, v) != want[6] || len(v.HookErrors) > 0 {
		r.Errorf("%s\npromised %s\nanswered %+v", question, promised, v)
	}
}

// effects are those of a verdict, as one list.
func effects(r *running, v *schema.Verdict) string {
	r.Helper()
	data, err := schema.Marshal(v.Effects)
	if err != nil {
		r.Error(err)
	}
	return string(data)
}
