"""What a study's runs say: metrics, statistics, tables and claims."""
