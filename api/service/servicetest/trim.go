package servicetest

// Trimmed is how many dead letters all nodes say they have deleted.
func (f *Fleet) Trimmed(why string) (n float64) {
	f.Helper()
	for _, node := range f.Nodes {
		families, err := node.registry.Gather()
		if err != nil {
			f.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != "ddq_dead_letters_trimmed_total" {
				continue
			}
			for _, m := range family.Metric {
				if m.GetLabel()[0].GetValue() == why {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}
