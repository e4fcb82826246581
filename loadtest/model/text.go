package model

import (
	"fmt"
	"math"
)

// grouped is a number with a comma at each thousand.
func grouped(v float64) string {
	v = math.Floor(v)
	if v < 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	thousands := math.Floor(v / 1000)
	return fmt.Sprintf("%s,%03.0f", grouped(thousands), v-1000*thousands)
}

// scaled is a number in the largest unit that leaves something before the point.
func scaled(v, step float64, units ...string) string {
	i := 0
	for ; i < len(units)-1 && v >= step; i++ {
		v /= step
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
}

func bytes(v float64) string { return scaled(v, 1024, "B", "KiB", "MiB", "GiB", "TiB") }

func seconds(v float64) string { return scaled(v*1e6, 1000, "µs", "ms", "s") }

func cores(v float64) string { return fmt.Sprintf("%.3g cores", v) }

func rate(v float64) string {
	if v >= 100 {
		return grouped(v) + " /s"
	}
	return fmt.Sprintf("%.3g /s", v)
}
