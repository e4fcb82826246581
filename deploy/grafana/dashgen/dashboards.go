package main

// The units, as Grafana names them.
const (
	perSecond = "reqps"
	seconds   = "s"
	share     = "percentunit"
	number    = "short"
	bytes     = "bytes"
	cores     = "none"
)

// The lines of instances that are chosen.
const chosen = `{instance=~"$instance"}`

// dashboards are all of them.
func dashboards() []dashboard {
	return []dashboard{fleet(), hooks(), injections(), rounds(), brokers()}
}

// rate is how often something is counted in a second, by some labels.
func rate(metric, by string) string {
	if by == "" {
		return "sum(rate(" + metric + "[$__rate_interval]))"
	}
	return "sum by (" + by + ") (rate(" + metric + "[$__rate_interval]))"
}

// one is a panel's only query.
func one(expr, legend string) []query { return []query{{expr, legend}} }

func instances() []variable { return []variable{{"instance", "Instance", "hookfabric_ready"}} }
