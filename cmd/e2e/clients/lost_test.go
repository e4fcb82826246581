package clients_test

import "testing"

// closed is a policy that lets everything pass as long as it can be asked.
const closed = `hooks:
  PreToolUse:
    - {name: harbour-master, type: builtin, handler: allow, matcher: "` + shells + `", fail_closed: true}
`

func TestGuardedCallsAreDeniedAfterAKilledBroker(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		f := startFabric(t, closed)
		h.install(r, f)
		h.play(h.touch("before"))
		if !h.ran("before") {
			t.Fatal("the command did not run while the broker lived")
		}
		f.kill()
		p := h.play(h.touch("after"))
		if h.ran("after") {
			t.Error("the guarded command ran without a verdict")
		}
		p.mustSee(1, "harbour-master")
	})
}

// TestAHungFabricIsAnsweredForInTime: a client that does not wait any longer runs
// the tool, so that what is denied was answered in time.
func TestAHungFabricIsAnsweredForInTime(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		f := startFabric(t, closed)
		h.install(r, f, "--timeout", "4s")
		h.play(h.touch("before"))
		if !h.ran("before") {
			t.Fatal("the command did not run while the broker answered")
		}
		f.hang(t)
		p := h.play(h.touch("after"))
		if h.ran("after") {
			t.Error("the guarded command ran without a verdict")
		}
		p.mustSee(1, "harbour-master")
	})
}

// TestTheShimAsksTheFabricIfItsDaemonFails: its hook is not fail-closed, so that a call that the fabric
// does not judge would run.
func TestTheShimAsksTheFabricIfItsDaemonFails(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*process, testing.TB){
		"killed": func(p *process, _ testing.TB) { p.kill() },
		"hung":   func(p *process, t testing.TB) { p.hang(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachClient(t, func(t *testing.T, h *home) {
				h.install(byDaemon(), startFabric(t, `hooks:
  PreToolUse:
    - {type: builtin, handler: deny, matcher: "`+shells+`", options: {reason: not while the tide is rising}}
`))
				lose(h.daemon, t)
				p := h.play(h.touch("marker"))
				if h.ran("marker") {
					t.Error("the denied command ran")
				}
				p.mustSee(1, "not while the tide is rising")
			})
		})
	}
}

// TestAFrozenAgentCallsNoTool, not either when the broker is gone, and with a hook that allows all.
func TestAFrozenAgentCallsNoTool(t *testing.T) {
	eachRoute(t, func(t *testing.T, h *home, r route) {
		f := startFabric(t, "hooks:\n  PreToolUse: [{type: builtin, handler: allow}]\n")
		h.install(r, f)
		f.freeze(t, "the tide is rising")
		for turn, lose := range []func(){func() {}, f.kill} {
			lose()
			p := h.play(h.touch("marker"))
			if h.ran("marker") {
				t.Errorf("turn %d: the command of a frozen agent ran", turn)
			}
			p.mustSee(1, "the tide is rising")
		}
	})
}

// TestTheFabricNeverAnswered checks that a shim that never reached the fabric follows its policy
// for that. A client that waits no longer would have asked its model.
func TestTheFabricNeverAnswered(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*fabric, testing.TB){
		"killed": func(f *fabric, _ testing.TB) { f.kill() },
		"hung":   func(f *fabric, t testing.TB) { f.hang(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachClient(t, func(t *testing.T, h *home) {
				f := startFabric(t, closed)
				h.install(byItself(), f, "--unreachable", "deny", "--timeout", "4s")
				lose(f, t)
				p, _ := h.try(h.touch("marker")) // clients differ in what they call a failure
				if h.ran("marker") {
					t.Error("the command ran")
				}
				if len(p.requests) != 0 && !h.hasty {
					t.Errorf("the model was called %d times with a prompt that no broker judged", len(p.requests))
				}
			})
		})
	}
}
