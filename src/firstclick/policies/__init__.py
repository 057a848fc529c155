"""The learners: one file, one learner."""
