<?php
usleep(20000);
echo 'slept';
