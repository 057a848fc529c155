"""The experiments and the claims of Zong et al. 2016, as declarations."""
