package model

import (
	"fmt"
	"math"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
)

func grouped(v float64) string { return units.Thousands(fmt.Sprintf("%.0f", math.Floor(v))) }
func bytes(v float64) string   { return units.Value(v, "B") }
func seconds(v float64) string { return units.Value(v, "s") }
func rate(v float64) string    { return units.Value(v, "/s") }
func cores(v float64) string   { return fmt.Sprintf("%.3g cores", v) }
