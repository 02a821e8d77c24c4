<?php
fwrite(fopen('php://stdout', 'w'), 'to stdout');
file_put_contents('php://stderr', 'to stderr');
echo 'body';
