// Package field puts up the fabric that a load test is done to: brokers,
// workers and, if they have one of their own, their server, each a process, with
// the network between them if that is to fail. A scenario adds processes of its
// own, so that faults and the sampling of memory and CPU reach them as well.
//
// field.go opens and closes it, local.go starts what belongs to it, cluster.go brokers
// that are one, external.go
// looks at a fabric that is there already, and usage.go at what processes take.
package field
