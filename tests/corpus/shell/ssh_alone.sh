ssh 
ssh node0
