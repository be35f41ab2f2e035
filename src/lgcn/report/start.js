drawCharts();
