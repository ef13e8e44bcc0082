package servicetest

// Gauges adds up a gauge over the nodes of a fleet that are there, by the values of a label.
func (f *Fleet) Gauges(name, label string) map[string]float64 {
	f.Helper()
	sums := make(map[string]float64)
	for _, node := range f.Nodes {
		families, err := node.registry.Gather()
		if err != nil {
			f.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != name || node.Gone {
				continue
			}
			for _, m := range family.GetMetric() {
				for _, pair := range m.GetLabel() {
					if pair.GetName() == label {
						sums[pair.GetValue()] += m.GetGauge().GetValue()
					}
				}
			}
		}
	}
	return sums
}
