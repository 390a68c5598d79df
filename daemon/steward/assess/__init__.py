"""What faults have cost on a Slurm cluster without Steward, and what Steward would have saved.

This room imports nothing else of Steward and only Python's standard library, and runs on Python 3.9, so that it can
also go alone to a login host, as one file. The way through it:

    ask        the commands of Slurm, or the files of an earlier run
    records    their text -> runs of jobs, events of nodes, facts about the site; `log`: slurmctld's own words
    outages    events of nodes -> times in which nodes were out of service, and why
    history    runs in order -> those that ended badly (setbacks), at which node, and when their jobs ran again
    estimate   what the data do not say: assumptions, and 80 % intervals of what follows from them
    costs      setbacks -> node-hours lost, by kind, user, partition, node and week
    lemons     nodes that fail more often than chance allows
    savings    the same -> what each feature of Steward would have saved, with 80 % intervals
    answer     all of it as one mapping, which is the JSON
    lines      the mapping as text; `page`: as one HTML file
"""
