from firstclick.cli import main

main()
