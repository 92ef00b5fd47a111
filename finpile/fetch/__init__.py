"""Downloads archives from the servers of their publishers: EDGAR, Common Crawl, Wikipedia.

`edgar`, `common_crawl` and `wikipedia` say which files a selection needs. `transfer` downloads them into a local
folder, over a `Client` that keeps to the server's rate and repeats what fails for a passing reason.
"""
