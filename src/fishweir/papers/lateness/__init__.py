"""The cost of late items: joins over news in the order of publication and in the order of arrival."""
