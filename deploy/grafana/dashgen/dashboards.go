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

// chosen selects the series of the chosen instances.
const chosen = `{instance=~"$instance"}`

// dashboards returns all dashboards.
func dashboards() []dashboard {
	return []dashboard{fleet(), hooks(), injections(), rounds(), brokers()}
}

// rate returns the query for the rate of a counter per second, summed by labels.
func rate(metric, by string) string {
	if by == "" {
		return "sum(rate(" + metric + "[$__rate_interval]))"
	}
	return "sum by (" + by + ") (rate(" + metric + "[$__rate_interval]))"
}

// one returns the queries of a panel that has one.
func one(expr, legend string) []query { return []query{{expr, legend}} }

func instances() []variable { return []variable{{"instance", "Instance", "hookfabric_ready"}} }
